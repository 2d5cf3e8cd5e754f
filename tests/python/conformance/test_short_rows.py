"""Blocks of short rows: tiles of 8, 16 and 32 threads along x, in blocks that fit and in others."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def product(a, b, out):
    left = cuda.shared.array((16, 16), np.float32)
    right = cuda.shared.array((16, 17), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    i, j = cuda.blockIdx.y * 16 + ty, cuda.blockIdx.x * 16 + tx
    total = np.float32(0)
    for t in range(0, a.shape[1], 16):
        left[ty, tx] = a[i, t + tx] if i < a.shape[0] and t + tx < a.shape[1] else np.float32(0)
        right[ty, tx] = b[t + ty, j] if t + ty < b.shape[0] and j < b.shape[1] else np.float32(0)
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = total


@pytest.mark.parametrize("shape", [(16, 16, 16), (20, 33, 18), (1, 1, 1)])
def test_tiles_of_a_product(shape):
    random = np.random.default_rng(1)
    m, n, k = shape
    a, b = random.integers(-9, 9, (m, k)).astype(np.float32), random.integers(-9, 9, (k, n)).astype(np.float32)
    run(product, (-(-n // 16), -(-m // 16)), (16, 16), a, b, np.zeros((m, n), np.float32))


@cuda.jit
def stepped(x, steps, out):
    tile = cuda.shared.array(1024, np.int32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    t = ty * 8 + tx
    tile[t] = x[t]
    cuda.syncthreads()
    value = tile[t]
    for step in range(steps):
        if ty % (step + 1) == 0 and tx != 3:
            value += tile[ty * 8] * step
        cuda.syncthreads()
        tile[t] = value if tx >= step else -value
        cuda.syncthreads()
    if tx < 5:
        out[t] = tile[t]


@pytest.mark.parametrize("block", [(8, 8), (8, 5), (7, 9), (5, 2, 1), (8, 1), (1, 8)])
def test_rows_of_any_length(block):
    run(stepped, 1, block, np.arange(1024, dtype=np.int32), 6, np.zeros(1024, np.int32))


@cuda.jit
def transposed(x, out):
    tile = cuda.shared.array((32, 33), np.float64)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    for k in range(0, 32, cuda.blockDim.y):
        tile[ty + k, tx] = x[ty + k, tx]
    cuda.syncthreads()
    for k in range(0, 32, cuda.blockDim.y):
        out[ty + k, tx] = tile[tx, ty + k]


@pytest.mark.parametrize("rows", [8, 32])
def test_a_transposed_tile(rows):
    run(transposed, 1, (32, rows), np.arange(1024.0).reshape(32, 32), np.zeros((32, 32)))
