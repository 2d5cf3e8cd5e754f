"""Every second thread, every fourth: branches on a remainder of the thread index."""

import numpy as np
import pytest
from harness import run
from weft import cuda

SHAPES = [1, 2, 31, 64, 100, (16, 4), (5, 7, 3), (33, 3)]


@cuda.jit
def reduced(x, out):
    sums = cuda.shared.array(256, np.float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    sums[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    s = 1
    while s < cuda.blockDim.x:
        if tid % (2 * s) == 0 and tid + s < cuda.blockDim.x:
            sums[tid] += sums[tid + s]
        cuda.syncthreads()
        s *= 2
    if tid == 0:
        out[cuda.blockIdx.x] = sums[0]


@pytest.mark.parametrize("block", [1, 2, 3, 32, 100, 256])
@pytest.mark.parametrize("size", [1, 300, 512])
def test_a_tree_of_sums(block, size):
    x = np.random.default_rng(size).random(size).astype(np.float32)
    run(reduced, -(-size // block), block, x, np.zeros(-(-size // block), np.float32))


@cuda.jit
def by_row(x):
    tile = cuda.shared.array((16, 16), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]
    cuda.syncthreads()
    power = 2
    while power <= 16:
        if ty % power == 0:
            tile[ty, tx] = tile[ty, tx] + tile[ty + power // 2, tx]
        cuda.syncthreads()
        if tx % power == power // 2:
            tile[ty, tx - power // 2] += tile[ty, tx]
        cuda.syncthreads()
        power *= 2
    x[ty, tx] = tile[ty, tx]


def test_rows_and_columns_of_a_tile():
    run(by_row, 1, (16, 16), np.random.default_rng(5).random((16, 16)).astype(np.float32))


@cuda.jit
def any_modulus(x, m, r, z, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    tid = cuda.threadIdx.x
    cuda.syncthreads()
    if tid % m == r:
        out[t, 0] = x[t]
    cuda.syncthreads()
    if r == (tid - 5) % m and tid + z < 50:
        out[t, 1] = x[t] + 1
        if tid > 3:
            out[t, 2] = 7
    cuda.syncthreads()
    if (tid + z) % m != r:
        out[t, 3] = x[t]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("m", [1, 2, 3, 7, 64, 1 << 40, -1, -3])
@pytest.mark.parametrize("r", [0, 1, 2, -1, 63])
def test_numbers_that_are_not_known(shape, m, r):
    size = int(np.prod(shape))
    for z in (0, -9):
        run(any_modulus, 1, shape, np.arange(size) * 3, m, r, z, np.zeros((size, 4), np.int64))


@cuda.jit
def constants(x, phase, out):
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    last = tid + 1 == cuda.blockDim.x
    cuda.syncthreads()
    if tid % 2 == phase % 2 and not last:
        out[i, 0], out[i + 1, 0] = x[i + 1], x[i]
    cuda.syncthreads()
    if tid & 1 and not last:
        out[i, 1] = x[i + 1]
        out[i + 1, 1] = x[i]
    cuda.syncthreads()
    if (tid & 1) == 0 and not last:
        out[i + 1, 2] = x[i]
        out[i, 2] = x[i + 1]
    cuda.syncthreads()
    if not tid % 16:
        out[i, 3] = x[i]
    cuda.syncthreads()
    if (i + phase) & 15 == 9:
        out[i, 4] = x[i]
    cuda.syncthreads()
    if (i - 30) % 12 == 11:
        out[i, 5] = x[i]
    cuda.syncthreads()
    if tid % 2 != phase % 2 and not last:
        out[i, 6] = x[i + 1]
        out[i + 1, 6] = x[i]
    cuda.syncthreads()
    if tid % 2 != phase:
        out[i, 7] = x[i]
        out[i, 8] = x[i]
    else:
        out[i, 7] = -x[i]
        out[i, 8] = -x[i]
    if tid % 10 == phase:
        for k in range(3):
            out[i, 9] += x[i] * k


@pytest.mark.parametrize("block", [1, 2, 15, 64, 130])
@pytest.mark.parametrize("phase", [0, 1, 2, 9, 13, -1, 1 << 40, -(1 << 62)])
def test_constant_numbers(block, phase):
    run(constants, 3, block, np.arange(3.0 * block) + 1, np.int64(phase), np.zeros((3 * block, 10)))


@cuda.jit
def carried(x, out):
    tid = cuda.threadIdx.x
    shared = cuda.shared.array(128, np.int32)
    shared[tid] = x[tid]
    cuda.syncthreads()
    value = shared[tid]
    turns = 0
    step = 1
    while step < 100:
        if tid % step == step // 2:
            value += shared[(tid + step) % 128]
            turns += 1
        cuda.syncthreads()
        shared[tid] = value
        cuda.syncthreads()
        step += 7
    out[tid] = value
    out[tid + 128] = turns


def test_what_threads_carry():
    run(carried, 1, 128, np.arange(128, dtype=np.int32), np.zeros(256, np.int32))


@cuda.jit
def after_a_guard(n, start, x, out):
    i = cuda.threadIdx.x
    if i >= n:
        return
    if i > start:
        if i % 4 == 1:
            out[i] = x[i]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 9, 10, 33])
@pytest.mark.parametrize("start", [-3, 0, 6, 8, 40])
def test_guards_that_leave_no_thread(n, start):
    """The other guard has an empty range: `i > 6` with two threads."""
    run(after_a_guard, 1, 33, n, start, np.arange(40.0) + 1, np.zeros(40))
