"""Threads whose partners' indices differ in one bit, in several, or in none."""

import numpy as np
import pytest
from harness import run
from weft import cuda

BITS = [0, 1, 2, 8, 16, 32, 64, 256, 512, 1 << 20, 3, 17, 24, 48, 96]


@cuda.jit
def exchanged(x, j, k, out):
    i = cuda.grid(1)
    partner = i ^ j
    if partner > i and partner < x.size:
        a = x[i]
        b = x[partner]
        swap = a > b if (i & k) == 0 else a < b
        if swap:
            out[i] = b
            out[partner] = a
        else:
            out[i] = a
            out[partner] = b


@cuda.jit
def in_place(x, j, k):
    i = cuda.grid(1)
    if i < x.size:
        partner = j ^ i
        if i < partner:
            if partner < x.size:
                if (i & k) == 0:
                    if x[i] > x[partner]:
                        x[i], x[partner] = x[partner], x[i]
                elif x[i] < x[partner]:
                    x[i], x[partner] = x[partner], x[i]


@cuda.jit
def compared(x, j, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    if (i ^ j) < x.size:
        there = x[i ^ j]
        above = (i ^ j) > i
        out[i, 0] = there
        out[i, 1] = above
        out[i, 2] = (i ^ j) >= i
        out[i, 3] = i == (i ^ j)
        out[i, 4] = 7 if not (i > (i ^ j)) else -there


@pytest.mark.parametrize("j", BITS)
@pytest.mark.parametrize("size", [1, 40, 500, 1024])
def test_pairs(j, size):
    x = np.random.default_rng(j).integers(0, 1000, size).astype(np.float32)
    if j == 0 or j & (j - 1) == 0:  # else two pairs would race
        run(exchanged, 5, 256, x, j, 512, np.zeros(size, np.float32))
        run(in_place, 5, 256, x, j, 128)
    run(compared, 9, 128, x, j, np.zeros((size, 5), np.float32))


@pytest.mark.parametrize("j", [-1, -2, (1 << 31) - 1])
def test_bits_that_are_no_distance(j):
    run(compared, 2, 64, np.arange(100.0, dtype=np.float32), j, np.zeros((100, 5), np.float32))


@cuda.jit
def sort(x):
    items = cuda.shared.array(256, np.float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    items[tid] = x[i]
    cuda.syncthreads()
    k = 2
    while k <= 256:
        j = k // 2
        while j > 0:
            partner = tid ^ j
            if partner > tid:
                up = (tid & k) == 0
                if (items[tid] > items[partner]) == up:
                    other = items[tid]
                    items[tid] = items[partner]
                    items[partner] = other
            cuda.syncthreads()
            j //= 2
        k *= 2
    x[i] = items[tid]


def test_a_bitonic_sort_in_blocks():
    x = np.random.default_rng(3).random(512).astype(np.float32)
    out = run(sort, 2, 256, x)[0]
    np.testing.assert_array_equal(out, np.sort(x.reshape(2, 256), axis=1).ravel())


@cuda.jit
def butterfly(x, bit, out):
    tile = cuda.shared.array((4, 64), np.int64)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]
    cuda.syncthreads()
    other = tx ^ (1 << bit)
    if other < tx:
        out[ty, tx] = tile[ty, other] - tile[ty, tx]
    else:
        out[ty, tx] = tile[ty, other] + tile[ty, tx]


@pytest.mark.parametrize("bit", range(6))
def test_rows_of_a_tile(bit):
    run(butterfly, 1, (64, 4), np.arange(256).reshape(4, 64) ** 2, bit, np.zeros((4, 64), np.int64))


@cuda.jit
def moved(x, j, z, out):
    i = cuda.grid(1)
    partner = i ^ j
    if partner > i and partner + z < 64:
        out[i] = x[partner]


@pytest.mark.parametrize("z", [0, -(1 << 63), (1 << 63) - 100, (1 << 63) - 40, -50, 40])
def test_guards_that_wrap(z):
    run(moved, 1, 64, np.arange(64.0), 32, np.int64(z), np.zeros(64))
