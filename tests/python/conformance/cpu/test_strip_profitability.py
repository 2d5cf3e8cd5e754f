"""Loops that pay in strips of threads, and loops that memory limits, which run over whole rows of threads."""

import numpy as np
import pytest
from harness import run
from weft import _weft, cuda


@cuda.jit
def column_sums(x, out):
    i = cuda.grid(1)
    if i < out.size:
        total = np.float32(0)
        for k in range(x.shape[0]):
            total += x[k, i]
        out[i] = total


@cuda.jit
def column_statistics(x, out):
    i = cuda.grid(1)
    if i < out.size:
        total, squares, cubes = np.float32(0), np.float32(0), np.float32(0)
        for k in range(x.shape[0]):
            value = x[k, i]
            total += value
            squares += value * value
            cubes += value * value * value
        out[i] = total + squares - cubes


@cuda.jit
def filtered(x, weights, out):
    i = cuda.grid(1)
    if i < out.size:
        total = np.float32(0)
        for k in range(weights.size):
            total += x[i + k] * weights[k]
        out[i] = total


@cuda.jit
def columns_of_a_block(x, out):
    center = cuda.shared.array(64, np.float32)
    i = cuda.grid(1)
    if cuda.threadIdx.x < x.shape[0]:
        center[cuda.threadIdx.x] = x[cuda.threadIdx.x, 0]
    cuda.syncthreads()
    if i < out.size:
        total = np.float32(0)
        for k in range(x.shape[0]):
            total += (x[k, i] - center[k]) * (x[k, i] - center[k])
        out[i] = total


MATRIX = np.random.default_rng(1).integers(-4, 5, (40, 1000)).astype(np.float32)
CASES = {
    "one sum in merged blocks": (column_sums, (MATRIX,), False),
    "more values than loads": (column_statistics, (MATRIX,), True),
    "overlapping rows": (filtered, (np.arange(1040, dtype=np.float32) % 7, np.ones(40, np.float32)), True),
    "blocks with barriers": (columns_of_a_block, (MATRIX,), False),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [64, 100])
def test_values(case, threads):
    kernel, args, _ = CASES[case]
    run(kernel, -(-1000 // threads), threads, *args, np.zeros(1000, np.float32))


@pytest.mark.parametrize("case", CASES)
def test_strips_are_made_where_they_pay(case):
    kernel, args, pays = CASES[case]
    kernel[16, 64](*args, np.zeros(1000, np.float32))
    assert all(("strip-mining" in names) == pays for _, _, names in _weft.plan_features(kernel))
