"""Branches of a strip-mined loop on which the whole block agrees."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def rows(x, first, out):
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    total = np.float32(0)
    for k in range(first, x.shape[1]):
        if k % 3 != 1:
            total += x[i, k]
    out[i] = total


@cuda.jit
def columns(x, least, out):
    i = cuda.grid(1)
    if i < x.shape[1]:
        low, high = np.float32(0), np.float32(0)
        for k in range(x.shape[0]):
            if k >= least and k % 2 == 0:
                low = low * np.float32(0.5) + x[k, i]
            if not (k < least):
                high += low
        out[i] = high + low


@cuda.jit
def tiles(x, out):
    tile = cuda.shared.array((8, 64), np.float32)
    t = cuda.threadIdx.x
    for k in range(8):
        tile[k, t] = x[k, t]
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(8):
        if k % 2 == cuda.blockIdx.x % 2:
            total = total * np.float32(0.5) + tile[k, 63 - t]
    cuda.syncthreads()
    out[cuda.blockIdx.x, t] = total


@pytest.mark.parametrize("shape", [(100, 40), (1, 1), (33, 0), (9, 17)])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_a_row_per_thread(shape, first):
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(np.float32)
    run(rows, -(-shape[0] // 32), 32, x, first, np.zeros(shape[0], np.float32))


@pytest.mark.parametrize("least", [0, 3, 100])
def test_a_column_per_thread(least):
    x = np.random.default_rng(2).integers(-50, 50, (40, 150)).astype(np.float32)
    run(columns, 3, 64, x, least, np.zeros(150, np.float32))


def test_a_branch_on_the_block():
    x = np.random.default_rng(3).integers(-50, 50, (8, 64)).astype(np.float32)
    run(tiles, 4, 64, x, np.zeros((4, 64), np.float32))
