"""Adjoint kernels of kernels whose lanes exchange values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check, check_tangents
from test_vjp import refused
from weft import cuda

ALL = 0xFFFFFFFF


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit
def broadcast(x, out):
    i = cuda.grid(1)
    v = x[i] * x[i]
    out[i] = cuda.shfl_sync(ALL, v, 3) * math.sin(v)


@cuda.jit
def gathered_lanes(x, lanes, out):
    """Each lane chooses a lane, of its segment of 8."""
    i = cuda.grid(1)
    v = math.exp(x[i])
    w = cuda.shfl_sync(ALL, v, lanes[i], 8)
    out[i] = w * w + v


@cuda.jit
def some_lanes(x, out):
    """Only half of the lanes take part."""
    i = cuda.grid(1)
    if cuda.laneid < 16:
        v = x[i] * x[i]
        out[i] = v * cuda.shfl_sync(0xFFFF, v, (cuda.laneid * 3 + 1) % 16)
    else:
        out[i] = x[i]


@cuda.jit
def warp_sums(x, out):
    i = cuda.grid(1)
    s = cuda.coop.warp.sum(x[i] * x[i])
    out[i] = x[i] / s


@cuda.jit
def warp_maxima(x, out):
    i = cuda.grid(1)
    m = cuda.coop.warp.max(x[i])
    out[i] = math.exp(x[i] - m) * m


@cuda.jit
def warp_scans(x, out):
    i = cuda.grid(1)
    v = cuda.coop.warp.inclusive_sum(x[i] * x[i])
    out[i] = v * v


@cuda.jit
def voted(x, out):
    """Votes have no derivative, and the adjoint kernel repeats them."""
    i = cuda.grid(1)
    v = x[i]
    big = cuda.ballot_sync(ALL, v > 0.5)
    if cuda.any_sync(ALL, v > 0.99):
        v = v * v
    out[i] = v * math.sin(v) * cuda.popc(big)


@cuda.jit
def until_all(x, out):
    """A loop that all lanes leave at once, after an unknown number of iterations."""
    i = cuda.grid(1)
    v = x[i] + 0.1
    while not cuda.all_sync(ALL, v > 2.0):
        v = v + 0.2 + 0.1 * math.sin(cuda.shfl_xor_sync(ALL, v, 1))
    out[i] = v


@cuda.jit
def warp_products(x, out):
    """A tree of each warp in shared memory, without barriers of the block."""
    tile = cuda.shared.array(64, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    tile[tid] = 0.5 + x[i] * x[i]
    cuda.syncwarp()
    n = 16
    while n > 0:
        if cuda.laneid < n:
            tile[tid] = tile[tid] * math.sin(tile[tid + n])
        cuda.syncwarp()
        n //= 2
    if cuda.laneid == 0:
        out[i // 32] = tile[tid]


@cuda.jit
def warp_steps(x, n, out):
    """Steps whose number differs in the warps, of which one has none."""
    tile = cuda.shared.array(96, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    warp = tid // 32
    if n[warp] > 0:
        tile[tid] = x[i]
        cuda.syncwarp()
        for k in range(n[warp]):
            near = tile[tid ^ 1] * tile[(tid + k) % 32 + 32 * warp]
            cuda.syncwarp()
            tile[tid] = math.sin(near) + 0.3 * tile[tid]
            cuda.syncwarp()
        out[i] = tile[tid] * x[i]


@cuda.jit
def both_barriers(x, out):
    """Tiles that a warp and then the block exchange, which each iteration writes first."""
    tile, sums = cuda.shared.array(64, np.float64), cuda.shared.array(64, np.float64)
    tid = cuda.threadIdx.x
    v = x[tid]
    for k in range(x.size // 16):
        tile[tid] = v * v
        cuda.syncwarp()
        sums[tid] = math.cos(tile[tid ^ 3]) * v
        cuda.syncthreads()
        v = v + 0.2 * sums[63 - tid] * tile[tid ^ 1] + 0.1 * k
        cuda.syncthreads()
    out[tid] = v


@cuda.jit
def halves(x, n, out):
    """Each half of a warp has its own barriers, and its own number of iterations."""
    tile = cuda.shared.array(64, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    tile[tid] = x[i] * x[i]
    if cuda.laneid < 16:
        cuda.syncwarp(0xFFFF)
        v = tile[tid ^ 3]
        for k in range(n[0]):
            cuda.syncwarp(0xFFFF)
            tile[tid] = math.sin(v) + 0.1 * k
            cuda.syncwarp(0xFFFF)
            v = v * tile[tid ^ 1]
    else:
        cuda.syncwarp(0xFFFF0000)
        v = tile[tid ^ 5] * x[i]
        for _ in range(n[1]):
            cuda.syncwarp(0xFFFF0000)
            tile[tid] = math.cos(v)
            cuda.syncwarp(0xFFFF0000)
            v = v + tile[tid ^ 2]
    out[i] = v


CASES = {
    "broadcast": (broadcast, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "gathered_lanes": (gathered_lanes, 2, 32, (uniform(64), np.arange(64) * 5 % 11, np.zeros(64)), ["out"]),
    "some_lanes": (some_lanes, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "warp_sums": (warp_sums, 2, 64, (uniform(128), np.zeros(128)), ["out"]),
    "warp_sums_of_few_lanes": (warp_sums, 2, 40, (uniform(80), np.zeros(80)), ["out"]),
    "warp_maxima": (warp_maxima, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "warp_scans": (warp_scans, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "voted": (voted, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "warp_products": (warp_products, 2, 64, (uniform(128), np.zeros(4)), ["out"]),
    "warp_steps": (warp_steps, 2, 96, (uniform(192), np.array([3, 0, 5]), np.zeros(192)), ["out"]),
    "both_barriers": (both_barriers, 1, 64, (uniform(64), np.zeros(64)), ["out"]),
    "halves": (halves, 2, 64, (uniform(128), np.array([2, 3]), np.zeros(128)), ["out"]),
    "until_all": (until_all, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    kernel, grid, block, args, outputs = CASES[case]
    check(kernel, grid, block, args, outputs)


@pytest.mark.parametrize("case", ["warp_products", "warp_steps", "both_barriers", "halves"])
def test_tangents_agree_with_gradients(case):
    check_tangents(*CASES[case])


def test_other_barriers_of_parts_of_warps_are_errors_at_their_lines():
    def in_a_loop(x, y):
        for _ in range(x.size):
            if cuda.laneid < 16:
                cuda.syncwarp(0xFFFF)
        y[0] = x[0]

    head, line = refused(in_a_loop, np.zeros(1), np.zeros(1))
    assert "a barrier of a part of a warp under a condition or a loop in a loop is not supported" in head
    assert line == "cuda.syncwarp(0xFFFF)"

    def computed(x, y):
        cuda.syncwarp(cuda.activemask())
        y[0] = x[0]

    head, line = refused(computed, np.zeros(1), np.zeros(1))
    assert "the derivative of a barrier of a warp whose mask is computed is not supported" in head
    assert line == "cuda.syncwarp(cuda.activemask())"
