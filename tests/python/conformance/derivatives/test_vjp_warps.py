"""Adjoint kernels of kernels whose lanes exchange values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check
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


CASES = {
    "broadcast": (broadcast, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "gathered_lanes": (gathered_lanes, 2, 32, (uniform(64), np.arange(64) * 5 % 11, np.zeros(64)), ["out"]),
    "some_lanes": (some_lanes, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "warp_sums": (warp_sums, 2, 64, (uniform(128), np.zeros(128)), ["out"]),
    "warp_sums_of_few_lanes": (warp_sums, 2, 40, (uniform(80), np.zeros(80)), ["out"]),
    "warp_maxima": (warp_maxima, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "warp_scans": (warp_scans, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "voted": (voted, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
    "until_all": (until_all, 2, 32, (uniform(64), np.zeros(64)), ["out"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    kernel, grid, block, args, outputs = CASES[case]
    check(kernel, grid, block, args, outputs)
