"""`cuda.jit(tune=True)` and `coarsen="auto"`: results do not change, and `explain` reports the variant that runs."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from weft import cuda

# These settings would override the expected behavior.
pytestmark = pytest.mark.skipif(
    bool(os.environ.get("WEFT_COARSEN") or os.environ.get("WEFT_TUNE")), reason="a setting says how to coarsen"
)


def product(a: Any, b: Any, c: Any) -> None:
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


def gathers(x: Any, where: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < out.size:
        out[i] += x[where[i]]


def in_use(kernel: Any) -> str:
    return kernel.explain().split("the last launch ran ")[1].splitlines()[0].replace(" ", "")


def test_results_are_the_same_while_it_is_measured_and_then() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((30, 20), dtype=np.float32), rng.random((20, 50), dtype=np.float32)
    expected = np.zeros((30, 50), np.float32)
    cuda.jit(product)[(7, 4), (8, 8)](a, b, expected)
    kernel = cuda.jit(product, tune=True, cache=False)
    for _ in range(40):
        c = np.zeros((30, 50), np.float32)
        kernel[(7, 4), (8, 8)](a, b, c)
        cuda.synchronize()
        assert c.tobytes() == expected.tobytes()
    assert " is used" in kernel.explain()
    assert len(kernel.overloads) == 1


def test_a_launch_does_its_work_once() -> None:
    where = np.random.default_rng(1).integers(0, 1000, 1000)
    x, out = np.arange(1000), np.zeros(1000, np.int64)
    kernel = cuda.jit(gathers, tune=True, cache=False)
    for turn in range(1, 41):
        kernel[8, 128](x, where, out)
        assert (out == turn * x[where]).all()


def test_large_arrays_of_the_host() -> None:
    x, where = np.arange(300_000), np.arange(300_000)[::-1].copy()
    out = np.zeros(300_000, np.int64)
    kernel = cuda.jit(gathers, tune=True, cache=False)
    for _ in range(20):
        kernel[300_000 // 128 + 1, 128](x, where, out)
    assert (out == 20 * x[where]).all()


@pytest.mark.cpu
def test_explain_says_where_the_registers_of_a_gpu_are() -> None:
    kernel = cuda.jit(gathers)
    x = np.arange(64)
    kernel[1, 64](x, x, x.copy())
    lines = [line.strip() for line in kernel.explain().splitlines()]
    assert any(line.startswith("registers and occupancy do not apply to the CPU: `weft emit FILE") for line in lines)


def test_factors_that_are_asked_for_are_not_measured() -> None:
    kernel = cuda.jit(gathers, tune=True, coarsen=2)
    x = np.arange(64)
    kernel[1, 64](x, x, x.copy())
    assert "2x1x1 threads in one" in kernel.explain()
    assert "blocks of" not in kernel.explain()
    assert kernel.overloads[next(iter(kernel.overloads))].coarsening_candidates == []


def test_the_estimate_says_why() -> None:
    def searches(x: Any, out: Any) -> None:
        i = cuda.grid(1)
        k = i
        while x[k] != i:
            k = x[k]
        out[i] = k

    def lanes(out: Any) -> None:
        out[cuda.grid(1)] = cuda.laneid

    tuned = cuda.jit(product, tune=True)
    compiled = tuned.compile("void(float32[:,::1], float32[:,::1], float32[:,::1])")
    blocks = [each for _, each, _, _ in compiled.coarsening_candidates]
    assert [each != (1, 1, 1) for each in blocks] == [number < 3 for number in range(len(blocks))]
    threads = [each for each, _, _, _ in compiled.coarsening_candidates[3:]]
    assert threads[0] in ((1, 4, 1), (2, 2, 1))
    assert all(np.prod(each) in (2, 4) for each in threads)
    for _, _, time, note in compiled.coarsening_candidates:
        assert f"{time // 10}.{time % 10} % of the time" in note
    assert "worth coarsening" in tuned.explain()
    for function, types, reason in (
        (searches, "void(int64[::1], int64[::1])", "leave a loop on conditions that depend on data"),
        (lanes, "void(int64[::1])", "reads its lane"),
    ):
        kernel = cuda.jit(function, tune=True)
        compiled = kernel.compile(types)
        assert compiled.coarsening_candidates == []
        assert reason in kernel.explain(types)


def test_more_copies_never_need_fewer_registers() -> None:
    kernel = cuda.jit(product, tune=True)
    compiled = kernel.compile("void(float32[:,::1], float32[:,::1], float32[:,::1])")
    counts = {}
    for threads, blocks, _, note in compiled.coarsening_candidates:
        if blocks != (1, 1, 1):
            continue
        of, plain = re.findall(r"(\d+) instead of (\d+) registers", note)[0]
        counts[threads] = int(of)
        counts[1, 1, 1] = int(plain)
    assert len(counts) > 3
    for a in counts:
        for b in counts:
            if all(x <= y for x, y in zip(a, b, strict=True)):
                assert counts[a] <= counts[b], (a, b)


def test_without_a_choice_nothing_is_estimated() -> None:
    kernel = cuda.jit(gathers, coarsen=1)
    compiled = kernel.compile("void(int64[::1], int64[::1], int64[::1])")
    assert compiled.coarsening_candidates == []
    assert compiled.coarsening == ""
    assert "threads are not coarsened" in kernel.explain()


@pytest.mark.parametrize("wrong", ["Auto", "off", ""])
def test_what_coarsen_cannot_be(wrong: str) -> None:
    with pytest.raises(ValueError, match="or 'auto', not"):
        cuda.jit(gathers, coarsen=wrong)
