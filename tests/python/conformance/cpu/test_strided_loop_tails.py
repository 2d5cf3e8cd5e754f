"""Interchanged strided loops with a partial last iteration: one warp per row."""

import numpy as np
import pytest
from harness import run
from weft import cuda

SHAPES = [32, 64, 96, 256, 20, 300, (32, 4), (16, 3), (33, 2), (64, 2, 2)]
LENGTHS = [0, 1, 31, 32, 33, 100, 256, 700]


@cuda.jit
def sums_by_32(x, bound, results):
    out = results[cuda.blockIdx.x]
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    kept = cuda.shared.array(1024, np.float32)
    total = np.float32(0)
    squares = np.float32(0)
    for i in range(cuda.threadIdx.x, bound, 32):
        total += x[i]
        if i % 3 == 0:
            squares += x[i] * x[i]
    kept[t] = total
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, bound, 32):
        out[t, i] = x[i] - kept[t]
    out[t, bound] = total + squares


@cuda.jit
def sums_by_256(x, bound, results):
    out = results[cuda.blockIdx.x]
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    kept = cuda.shared.array(1024, np.float32)
    total = np.float32(1)
    i = cuda.threadIdx.x + 1
    while i <= bound:
        total = total * np.float32(0.5) + x[i - 1]
        i += 256
    kept[t] = total
    cuda.syncthreads()
    out[t, 0] = kept[t]
    largest = np.int64(-5)
    where = -1
    for k in range(cuda.threadIdx.x, bound, 64):
        value = np.int64(x[k] * 100)
        if value > largest:
            largest = value
            where = k
    cuda.syncthreads()
    out[t, 1] = largest
    out[t, 2] = where


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_that_end_within_a_strip(shape, length):
    x = np.random.default_rng(length).random(max(length, 1)).astype(np.float32)
    threads = int(np.prod(shape))
    run(sums_by_32, 2, shape, x, length, np.zeros((2, threads, length + 1), np.float32))
    run(sums_by_256, 2, shape, x, length, np.zeros((2, threads, 3), np.float32))


@cuda.jit
def rows_of_a_matrix(x, out):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    if row < x.shape[0]:
        total = np.float64(0)
        for i in range(lane, x.shape[1], 32):
            total += x[row, i]
        step = 16
        while step > 0:
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, step)
            step //= 2
        for i in range(lane, x.shape[1], 32):
            out[row, i] = x[row, i] - total


@pytest.mark.parametrize("rows", [1, 4, 5])
@pytest.mark.parametrize("columns", [1, 20, 32, 100, 768])
def test_a_warp_a_row(rows, columns):
    x = np.random.default_rng(columns).integers(0, 100, (rows, columns)).astype(np.float64)
    out = np.zeros_like(x)
    rows_of_a_matrix[-(-rows // 4), (32, 4)](x, out)
    np.testing.assert_array_equal(out, x - x.sum(axis=1, keepdims=True))


@cuda.jit
def near_the_largest(start, bound, out):
    turns = 0
    last = np.int64(0)
    i = start + cuda.threadIdx.x
    while i < bound:
        turns += 1
        last = i
        i += 32
    cuda.syncthreads()
    out[cuda.threadIdx.x, 0] = turns
    out[cuda.threadIdx.x, 1] = last


@pytest.mark.parametrize("threads", [32, 40, 64])
@pytest.mark.parametrize("ahead", [0, 1, 33, 100])
def test_indices_near_the_largest_integer(threads, ahead):
    bound = (1 << 63) - 200
    start = np.int64(bound - ahead)
    run(near_the_largest, 1, threads, start, np.int64(bound), np.zeros((threads, 2), np.int64))


@cuda.jit
def long_steps(counts, bound):
    t = cuda.threadIdx.x
    for _ in range(t, bound, 2**60):
        counts[0, t] += 1
    for _ in range(t, 2**63 - 1, 2**60):
        counts[1, t] += 1
    for _ in range(t, bound, cuda.blockDim.x * 2**53):
        counts[2, t] += 1


@pytest.mark.parametrize("bound", [0, 1, 2**60, 7 * 2**60, 7 * 2**60 + 20, 2**63 - 33, 2**63 - 1])
def test_a_step_that_is_large_beside_the_largest_integer(bound):
    threads = 32
    counts = np.zeros((3, threads), np.int64)
    long_steps[1, threads](counts, bound)
    steps = [(bound, 2**60), (2**63 - 1, 2**60), (bound, threads * 2**53)]
    for got, (end, step) in zip(counts, steps, strict=True):
        assert got.tolist() == [len(range(t, end, step)) for t in range(threads)]
