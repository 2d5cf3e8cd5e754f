"""Adjoint kernels in which lanes add to the same elements of shared memory, for blocks of several shapes."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import check
from weft import cuda

SIDE = 32


@cuda.jit
def rows_and_columns(x, out, skipped):
    tile = cuda.shared.array((SIDE, SIDE), np.float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    width, height = cuda.blockDim.x, cuda.blockDim.y
    tile[ty, tx] = x[cuda.blockIdx.x, ty, tx]
    cuda.syncthreads()
    s = 0.0
    for k in range(width):
        if (tx + 2 * ty + k) % 5 >= skipped:
            s += tile[ty, k] * tile[k % height, tx]
    out[cuda.blockIdx.x, ty, tx] = s


@cuda.jit
def one_row(x, out, skipped):
    tile = cuda.shared.array(4 * SIDE, np.float64)
    t, n = cuda.threadIdx.x, cuda.blockDim.x
    tile[t] = x[cuda.blockIdx.x, t]
    cuda.syncthreads()
    s = 0.0
    for k in range(n):
        if (t + k) % 5 >= skipped:
            s += tile[k] * tile[k] * tile[(t // 8 + k) % n]
    out[cuda.blockIdx.x, t] = s


@pytest.mark.parametrize("skipped", [0, 1])
@pytest.mark.parametrize("block", [(16, 16), (32, 4), (16, 4), (8, 8), (24, 4), (16, 3), (5, 7)])
def test_rows_and_columns(block, skipped):
    x = np.random.default_rng(sum(block)).random((2, *block[::-1]))
    check(rows_and_columns, 2, block, (x, np.zeros_like(x), skipped), ["out"], directions=1)


@pytest.mark.parametrize("skipped", [0, 1])
@pytest.mark.parametrize("threads", [32, 64, 128, 48, 20])
def test_one_row(threads, skipped):
    x = np.random.default_rng(threads).random((2, threads))
    check(one_row, 2, threads, (x, np.zeros_like(x), skipped), ["out"], directions=1)


@cuda.jit
def tiles(a, b, out):
    left, right = cuda.shared.array((16, 16), np.float64), cuda.shared.array((16, 16), np.float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    s = 0.0
    for first in range(0, a.shape[1], 16):
        for row in range(ty, 16, cuda.blockDim.y):
            for column in range(tx, 16, cuda.blockDim.x):
                left[row, column] = a[row, first + column]
                right[row, column] = b[first + row, column]
        cuda.syncthreads()
        for k in range(16):
            s += left[ty % 16, k] * right[k, tx % 16] * (1 + 0.1 * tx + k)
        cuda.syncthreads()
    out[ty, tx] = s


@cuda.jit
def product(a, b, out):
    left, right = cuda.shared.array((16, 16), np.float64), cuda.shared.array((16, 16), np.float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    g = a[0, 0] + tx
    s = 0.0
    for first in range(0, a.shape[1], 16):
        left[ty, tx] = a[row, first + tx]
        right[ty, tx] = b[first + ty, column]
        cuda.syncthreads()
        for k in range(16):
            s += g * left[ty, k] * right[k, tx] + k * left[ty, k]
        cuda.syncthreads()
    out[row, column] = s


@cuda.jit
def all_pairs(x, out):
    values = cuda.shared.array(32, np.float64)
    t = cuda.threadIdx.x
    if t < 32:
        values[t] = x[cuda.blockIdx.x, t]
    cuda.syncthreads()
    s = 0.0
    for k in range(32):
        s += values[k] * (values[k] + t) * (1 + k)
    out[cuda.blockIdx.x, t] = s


@pytest.mark.parametrize("block", [(16, 16), (16, 8), (8, 16), (32, 4)])
def test_tiles(block):
    rng = np.random.default_rng(sum(block))
    out = np.zeros((block[1], block[0]))
    check(tiles, 1, block, (rng.random((16, 32)), rng.random((32, 16)), out), ["out"], directions=1)


def test_product():
    rng = np.random.default_rng(3)
    check(product, (2, 2), (16, 16), (rng.random((32, 48)), rng.random((48, 32)), np.zeros((32, 32))), ["out"])


@pytest.mark.parametrize("threads", [32, 64, 20])
def test_all_pairs(threads):
    x = np.random.default_rng(threads).random((2, 64))
    check(all_pairs, 2, threads, (x, np.zeros((2, threads))), ["out"], directions=1)
