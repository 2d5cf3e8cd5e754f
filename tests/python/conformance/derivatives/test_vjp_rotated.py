"""Adjoint kernels in which all lanes add to an element in each iteration of a loop, or to some elements of the grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check
from weft import cuda


@cuda.jit
def pairs(p, m, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        x = y = 0.0
        for j in range(p.shape[0]):
            dx, dy = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1]
            r = dx * dx + dy * dy + 0.5
            f = m[j] / (r * math.sqrt(r))
            x, y = x + f * dx, y + f * dy
        out[i, 0], out[i, 1] = x, y


@cuda.jit
def strided(w, x, out, first, last):
    """Some lanes add to some elements, in blocks of two rows."""
    i = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    t = cuda.threadIdx.x
    s = 0.0
    count = 0
    for k in range(first, last, 3):
        v = w[k] * x[i, t]
        if (k + t) % 4 != 0:
            count += 1
            s += v * w[k + 1] + k
        elif v > 0.4:
            s -= w[k + 2] * v
    out[i, t] = s + count


@cuda.jit
def different_bounds(w, x, out):
    i = cuda.grid(1)
    s = 0.0
    for k in range(i % 3, 40 + i % 2):
        s += math.sin(w[k]) * x[i]
    out[i] = s


@cuda.jit
def nested(w, x, out):
    i = cuda.grid(1)
    s = 0.0
    for row in range(w.shape[0]):
        for k in range(w.shape[1]):
            s += w[row, k] * w[row, k] * x[i]
    out[i] = s


@pytest.mark.parametrize("bodies", [1, 31, 32, 33, 64, 100])
def test_pairs(bodies):
    rng = np.random.default_rng(bodies)
    args = (rng.random((bodies, 2)), rng.random(bodies), np.zeros((bodies, 2)))
    check(pairs, -(-bodies // 64), 64, args, ["out"])


@pytest.mark.parametrize(("first", "last"), [(0, 93), (0, 94), (0, 96), (5, 120), (0, 300), (7, 7), (9, 3)])
@pytest.mark.parametrize("block", [(32, 2), (16, 4), (24, 2)])
def test_strided(block, first, last):
    rng = np.random.default_rng(first + last)
    x = rng.random((2 * block[1], block[0]))
    args = (rng.random(304), x, np.zeros_like(x), np.int64(first), np.int64(last))
    check(strided, 2, block, args, ["out"], directions=1)


def test_different_bounds():
    rng = np.random.default_rng(5)
    check(different_bounds, 2, 64, (rng.random(41), rng.random(128), np.zeros(128)), ["out"])


def test_nested():
    rng = np.random.default_rng(6)
    check(nested, 1, 64, (rng.random((3, 70)), rng.random(64), np.zeros(64)), ["out"])


@cuda.jit
def convolution(u, w, out):
    """Loads that differ between lanes and iterations, and additions to neighbors."""
    i = cuda.grid(1)
    if i < out.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * u[i + k]
        out[i] = s


@cuda.jit
def recurrence(w, x, out, first, stride):
    """The iterations depend on each other, and some lanes skip some of them."""
    i = cuda.grid(1)
    s = 0.0
    for k in range(first, w.shape[0], 2):
        if (k + i) % 3 != 0:
            s += w[k, 1] * x[k * stride + i] + w[k, 0]
    out[i] = s * s


@cuda.jit
def sums_of_a_block(a, x, out):
    """The last warp may have fewer lanes."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[0] * x[i] + a[1] * a[2] * x[i] * x[i]


@pytest.mark.parametrize("taps", [0, 1, 7, 8, 9, 15, 16, 17, 40, 100])
def test_convolution(taps):
    rng = np.random.default_rng(taps)
    args = (rng.random(150 + max(taps - 1, 0)), rng.random(taps), np.zeros(150))
    check(convolution, 3, 64, args, ["out"], directions=1)


@pytest.mark.parametrize("first", [0, 3, 60, 70])
@pytest.mark.parametrize("threads", [64, 40])
def test_recurrence(first, threads):
    rng = np.random.default_rng(first + threads)
    x = rng.random(64 * 100 + threads)
    args = (rng.random((64, 2)), x, np.zeros(threads), np.int64(first), np.int64(100))
    check(recurrence, 1, threads, args, ["out"], directions=1)


@pytest.mark.parametrize("threads", [32, 64, 20, 50, 96])
def test_sums_of_a_block(threads):
    rng = np.random.default_rng(threads)
    check(sums_of_a_block, 3, threads, (rng.random(3), rng.random(3 * threads), np.zeros(3 * threads)), ["out"])
