"""Names that a kernel reuses for another value: bounds of a counter in one loop do not hold in the next."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def two_loops(a, b, out):
    x = cuda.grid(1)
    if x < out.size:
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i, x]
        for i in range(b.shape[0]):
            total -= 2 * b[i, x]
        out[x] = total


@cuda.jit
def read_behind(a, out):
    x = cuda.grid(1)
    if x < out.shape[0]:
        k = -1
        for i in range(a.shape[0]):
            k = i * 2
            out[x, 0] += a[i, x]
        for i in range(3, a.shape[0]):
            out[x, 1] += a[i, x] * k
        out[x, 2] = k
        for k in range(x % 5):
            out[x, 3] += k
        out[x, 4] = k


@cuda.jit
def inner_and_outer(a, out):
    tile = cuda.shared.array(64, np.float64)
    tid = cuda.threadIdx.x
    i = tid
    while i < 64:
        tile[i] = 0.0
        i += cuda.blockDim.x
    cuda.syncthreads()
    for k in range(a.shape[0]):
        i = tid
        while i < 64:
            tile[i] += a[k, i]
            i += cuda.blockDim.x
        cuda.syncthreads()
    i = 63 - tid
    out[cuda.blockIdx.x, tid] = tile[i]
    if tid % 2 == 0:
        i = tid // 2
    out[cuda.blockIdx.x, tid] += i


@cuda.jit
def means(x, out, squares):
    row = cuda.blockIdx.x
    tid = cuda.threadIdx.x
    sums = cuda.shared.array(64, np.float64)
    total = 0.0
    for image in range(x.shape[0]):
        for i in range(tid, x.shape[2], 64):
            total += x[image, row, i]
    sums[tid] = total
    cuda.syncthreads()
    step = 32
    while step > 0:
        if tid < step:
            sums[tid] += sums[tid + step]
        cuda.syncthreads()
        step //= 2
    mean = sums[0] / (x.shape[0] * x.shape[2])
    for image in range(x.shape[0]):
        for i in range(tid, x.shape[2], 64):
            squares[image, row, i] = (x[image, row, i] - mean) ** 2
    if tid == 0:
        out[row] = mean


@cuda.jit
def segments(starts, x, out):
    block = cuda.blockIdx.x
    tid = cuda.threadIdx.x
    sums = cuda.shared.array(32, np.int64)
    first = starts[block]
    end = starts[block + 1]
    sums[tid] = 0
    cuda.syncthreads()
    for j in range(first, end):
        sums[tid] += x[j] * tid
        cuda.syncthreads()
    out[block, tid] = sums[31 - tid]


@cuda.jit
def beyond(starts, x, out):
    i = cuda.grid(1)
    block = cuda.blockIdx.x
    if i >= out.size:
        return
    first = starts[block]
    value = x[first + cuda.threadIdx.x]
    cuda.syncthreads()
    out[i] = value + cuda.syncthreads_count(value > 3)


@cuda.jit
def arms(x, out, n):
    i, j = cuda.grid(2)
    if i < n and j < n:
        if i <= j:
            total = 0
            for k in range(x.shape[1]):
                total += x[j, k] * x[i, k]
            out[j, i] = total
        else:
            for k in range(3):
                out[j, i] -= k


@pytest.mark.parametrize("size", [1, 33, 300])
def test_loops_one_after_the_other(size):
    numbers = np.random.default_rng(size)
    run(two_loops, 3, 128, numbers.random((9, size)), numbers.random((70, size)), np.zeros(size))


@pytest.mark.parametrize("turns", [0, 1, 5, 40])
def test_what_is_read_behind_a_loop(turns):
    run(read_behind, 2, 64, np.random.default_rng(2).random((turns, 100)), np.zeros((100, 5)))


@pytest.mark.parametrize("threads", [32, 64])
def test_inside_and_outside(threads):
    run(inner_and_outer, 3, threads, np.random.default_rng(4).random((5, 64)), np.zeros((3, threads)))


@pytest.mark.parametrize("width", [1, 64, 200])
def test_strided_loops_in_loops(width):
    x = np.random.default_rng(width).integers(0, 50, (4, 3, width)).astype(np.float64)
    run(means, 3, 64, x, np.zeros(3), np.zeros_like(x))


def test_turns_that_the_block_loads():
    starts = np.array([0, 3, 3, 10, 11], np.int32)
    run(segments, 4, 32, starts, np.arange(11), np.zeros((4, 32), np.int64))


def test_a_block_without_threads_loads_nothing():
    starts = np.array([0, 5], np.int64)
    run(beyond, 4, 16, starts, np.arange(40) % 7, np.zeros(20, np.int64))


@pytest.mark.parametrize("n", [1, 20, 50])
def test_arms_with_loops(n):
    x = np.random.default_rng(n).integers(-9, 9, (n, 12))
    run(arms, (4, 4), (16, 16), x, np.zeros((n, n), np.int64), n)
