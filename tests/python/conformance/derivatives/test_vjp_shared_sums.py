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
