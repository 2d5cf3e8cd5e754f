"""Ends of thread loops over warps (`cuda.grid(1) // 32 < n`) and over many merged blocks."""

import numpy as np
import pytest
from weft import cuda

FULL = 0xFFFFFFFF


@cuda.jit
def by_warps(x, out, n):
    row = cuda.grid(1) // 32
    lane = cuda.threadIdx.x % 32
    if row < n:
        total = x[row, lane]
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(FULL, total, offset)
            offset //= 2
        if lane == 0:
            out[row] = total


@pytest.mark.parametrize("rows", [1, 3, 8, 21])
@pytest.mark.parametrize("block", [32, 64, 256])
def test_a_warp_a_row(rows, block):
    x = np.arange(rows * 32, dtype=np.int64).reshape(rows, 32) ** 2
    for n in (rows, rows - 1, 0, -1, -5):
        out = np.full(rows, -7, np.int64)
        by_warps[-(-rows * 32 // block) + 1, block](x, out, n)
        expected = np.where(np.arange(rows) < n, x.sum(axis=1), -7)
        np.testing.assert_array_equal(out, expected)


def make(condition):
    """A kernel with a condition on a quotient, followed by a barrier."""

    @cuda.jit
    def kernel(out, n):
        cell = cuda.shared.array(64, np.int64)
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        if condition(i - 40, n):
            cell[t] = i
        cuda.syncthreads()
        if condition(i - 40, n):
            out[i] = cell[t] + 1

    return kernel


@cuda.jit(device=True)
def below(i, n):
    return i // 7 < n


@cuda.jit(device=True)
def from_on(i, n):
    return i // 7 >= n


@cuda.jit(device=True)
def shifted(i, n):
    return i >> 3 < n


@cuda.jit(device=True)
def mirrored(i, n):
    return n > i // 16


CONDITIONS = [
    (below, lambda i, n: i // 7 < n),
    (from_on, lambda i, n: i // 7 >= n),
    (shifted, lambda i, n: i >> 3 < n),
    (mirrored, lambda i, n: n > i // 16),
]


@pytest.mark.parametrize(("device", "host"), CONDITIONS, ids=lambda value: getattr(value, "__name__", "") or None)
def test_conditions_on_quotients(device, host):
    kernel = make(device)
    i = np.arange(192)
    for n in (-9, -6, -5, -1, 0, 1, 3, 14, 100, 2**62, 2**63 - 1, -(2**63)):
        out = np.full(192, -1, np.int64)
        kernel[3, 64](out, n)
        np.testing.assert_array_equal(out, np.where(host(i - 40, n), i + 1, -1), f"n = {n}")


@cuda.jit
def strided(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i] * 3 + out[i]


@cuda.jit
def plain(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] += x[i] * 3


@pytest.mark.parametrize("n", [1, 1000, 16 * 1024, 16 * 1024 + 1, 200_003])
@pytest.mark.parametrize(("blocks", "block"), [(1, 32), (700, 96), (64, 1024), (3000, 8)])
def test_rows_of_many_blocks(n, blocks, block):
    x = np.arange(n, dtype=np.int64)
    out = np.ones(n, np.int64)
    strided[blocks, block](x, out)
    np.testing.assert_array_equal(out, 3 * x + 1)
    out = np.ones(n, np.int64)
    plain[blocks, block](x, out)
    np.testing.assert_array_equal(out, np.where(x < blocks * block, 3 * x + 1, 1))
