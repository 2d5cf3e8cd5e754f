"""The generated kernels of tests/benchmarks: deterministic, varied, and with the same outputs in all variants."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import oracle
import pytest
from weft import cuda

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    from generated import generate
    from kernels import spoil
finally:
    sys.path.remove(str(BENCHMARKS))

SEEDS = range(12)
FACTORS = ({"coarsen": 2}, {"coarsen": (1, 2)}, {"coarsen_blocks": 2}, {})
MANY = 300
CONSTRUCTS = (
    "cuda.grid", "index by block and thread", "grid-stride loop", "2-D grid", "3-D grid", "x along rows",
    "guard: if", "guard: return", "guard: borders", "no guard", "early return of some threads", "continue",
    "float32", "float64", "int32", "int64", "uint8", "int16", "bool", "strided array", "Fortran order",
    "in-place update", "strided access", "transposed access", "reversed access", "stencil: clamped",
    "stencil: wrapped", "stencil: inside", "window", "gather", "sparse row", "loop of constant trip count",
    "loop of runtime trip count", "geometric loop", "while", "nested loops", "divergent exit", "binary search",
    "data-dependent trip count", "local array", "shared tile", "barrier", "loop of barriers", "halo",
    "reduction in shared memory", "counting barrier", "atomic add", "atomic min", "atomic max", "few bins",
    "many bins", "histogram in shared memory", "shuffle", "vote", "device function", "tuple of a device function",
    "math functions", "float32 literal", "plain float literal", "NumPy typing", "several stores",
    "extent of a shape",
)  # fmt: skip


def outputs(case, work, args):
    return tuple(args[position] for position in work.outputs)


def work_of(case):
    work = case.work("tiny")
    spoil(np, case, work, work.args)
    return work


def launched(case, **options):
    work = work_of(case)
    cuda.jit(case.make(cuda).py_func, **case.options, **options)[work.grid, work.block](*work.args)
    return outputs(case, work, work.args)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_outputs_of_a_kernel_are_the_same_coarsened_and_in_the_oracle(seed):
    case = generate(seed)
    expected = launched(case, coarsen=1)
    for options in FACTORS:
        assert case.error(np, launched(case, **options), expected) <= case.tolerance, options
    work = work_of(case)
    emulated = oracle.launch(case.make(cuda), work.grid, work.block, *work.args)
    assert case.error(np, outputs(case, work, emulated), expected) <= case.tolerance


def test_a_seed_has_one_kernel_one_launch_and_one_input():
    for seed in SEEDS:
        case, again = generate(seed), generate(seed)
        assert (case.source, case.signature, case.options) == (again.source, again.signature, again.options)
        work, same = case.work("tiny"), again.work("tiny")
        assert (work.grid, work.block) == (same.grid, same.block)
        inputs = set(range(len(work.args))) - set(work.outputs)
        assert all(np.array_equal(work.args[position], same.args[position]) for position in inputs)


def test_every_construct_occurs():
    counts = Counter(feature for seed in range(MANY) for feature in generate(seed).features)
    assert not [name for name in CONSTRUCTS if not counts[name]]
    numpy_typed = sum(bool(generate(seed).options) for seed in range(MANY))
    assert MANY / 4 < numpy_typed < MANY / 2.2


def test_kernels_have_up_to_four_inputs_and_many_threads():
    for seed in SEEDS:
        case = generate(seed)
        work = case.work("full")
        assert np.prod(work.grid) * np.prod(work.block) >= 2 * 132 * 2048
        arrays = {position for position, arg in enumerate(work.args) if isinstance(arg, np.ndarray)}
        assert 1 <= len(arrays - set(work.outputs)) <= 4 or set(work.initial), case.name


@pytest.mark.parametrize("expected", [[1.0, np.nan], [1, 2]])
def test_the_error_of_different_outputs_is_infinite(expected):
    case, right = generate(0), np.array(expected)
    wrong = right.copy()
    wrong[-1] = 3
    assert case.error(np, (right,), (right,)) == 0
    assert case.error(np, (wrong,), (right,)) == float("inf")
