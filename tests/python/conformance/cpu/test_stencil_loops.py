"""Loops that read neighbors: the CPU interchanges them in the steady state, and not for threads near a boundary.

The tests use rows of all lengths: shorter than the first boundary, ending on it, between the two boundaries, and
shorter than the window.
"""

import math

import numpy as np
import pytest
from harness import run
from weft import cuda

SHAPES = [(1, 1), (1, 2), (2, 1), (3, 40), (5, 100), (2, 300)]
BLOCKS = [(16, 4), (64, 1), (1, 8), (37, 3)]


def image(shape, dtype=np.int32):
    return (np.arange(math.prod(shape)).reshape(shape) * 7 % 251).astype(dtype)


def launch_over(kernel, shape, block, *args):
    grid = tuple(-(-extent // size) + 1 for extent, size in zip(shape[::-1], block, strict=False))
    run(kernel, grid, block, *args)


@cuda.jit
def layers(a, out):
    x, y = cuda.grid(2)
    nz, ny, nx = a.shape
    if x < nx and y < ny:
        west = x if x == 0 else x - 1
        if x == nx - 1:
            east = x
        else:
            east = x + 1
        north = y - 1 if y > 0 else 0
        below = a[0, y, x]
        here = below
        for z in range(nz):
            above = a[z + 1, y, x] if z < nz - 1 else here
            out[z, y, x] = here * 3 + a[z, y, west] * 5 - a[z, y, east] * 7 + a[z, north, x] + below * 11 - above
            below = here
            here = above


@cuda.jit
def layers_behind_a_return(a, out):
    x, y = cuda.grid(2)
    if x >= a.shape[2] or y >= a.shape[1]:
        return
    total = 0
    for z in range(a.shape[0]):
        total = total * 2 + a[z, y, max(x - 1, 0)] - a[z, y, min(x + 2, a.shape[2] - 1)]
        out[z, y, x] = total


@cuda.jit
def layers_that_run_around(a, out):
    x, y = cuda.grid(2)
    nz, ny, nx = a.shape
    if x < nx and y < ny:
        total = 0
        for z in range(nz):
            total = total * 2 + a[z, y, (x + nx - 1) % nx] - a[z, (y + 1) % ny, (x + 1) % nx]
            out[z, y, x] = total


@pytest.mark.parametrize("kernel", [layers, layers_behind_a_return, layers_that_run_around])
@pytest.mark.parametrize("block", BLOCKS)
def test_columns_of_layers(kernel, block):
    for shape in SHAPES:
        for nz in (0, 1, 4):
            if nz == 0 and kernel is layers:
                continue
            whole = (nz, *shape)
            launch_over(kernel, shape, block, image(whole), np.zeros(whole, np.int64))


@cuda.jit
def window(a, weights, radius, out):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        total = 0
        seen = 0
        for j in range(-radius, radius + 1):
            for i in range(-radius, radius + 1):
                value = a[min(max(y + j, 0), h - 1), min(max(x + i, 0), w - 1)]
                total = total * 3 + weights[i + radius] * value
                seen += value > total
        out[y, x] = total - seen


@cuda.jit
def window_of_those_inside(a, weights, radius, out):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        total = 0
        for i in range(-radius, radius + 1):
            if 0 <= x + i < w:
                total = total * 3 + weights[i + radius] * a[y, x + i]
        out[y, x] = total


@cuda.jit
def window_as_large_as_its_weights(a, weights, radius, out):
    """Both loops end at the bounds of an array; neighbors outside are counted."""
    y, x = cuda.grid(2)[::-1]
    if y >= a.shape[0] or x >= a.shape[1]:
        return
    total = outside = 0
    middle = weights.shape[0] // 2
    for dy in range(weights.shape[0]):
        for dx in range(weights.shape[0]):
            row, column = y + dy - middle, x + dx - middle
            if row >= 0 and row < a.shape[0] and column >= 0 and column < a.shape[1]:
                total += a[row, column] * weights[dy] + dx
            else:
                outside += weights[dx]
    out[y, x] = total * 1000 + outside + radius


@pytest.mark.parametrize("kernel", [window, window_of_those_inside, window_as_large_as_its_weights])
@pytest.mark.parametrize("block", BLOCKS)
def test_windows(kernel, block):
    for shape in SHAPES:
        for radius in (-1, 0, 1, 3):
            weights = np.arange(7, dtype=np.int64) - 2
            launch_over(kernel, shape, block, image(shape), weights, np.int32(radius), np.zeros(shape, np.int64))


@pytest.mark.parametrize("radius", [2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_windows_of_any_size(radius):
    @cuda.jit
    def first_turns(a, radius, out):
        i = cuda.grid(1)
        n = a.size
        if i < n:
            total = 0
            for k in range(-radius, radius + 1):
                total = total * 3 + a[min(max(i + k, 0), n - 1)]
                if k + radius >= 3:
                    break
            out[i] = total

    run(first_turns, 3, 32, np.arange(70, dtype=np.int64), np.int64(radius), np.zeros(70, np.int64))


@cuda.jit
def weighed(a, radius, out):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        total = np.float32(0)
        weights = np.float32(0)
        for i in range(-radius, radius + 1):
            value = a[y, min(max(x + i, 0), w - 1)]
            difference = value - a[y, x]
            weight = math.exp(-difference * difference)
            total += weight * value
            weights += weight
        out[y, x] = total / weights


def test_exponentials_in_a_window():
    rows = np.random.default_rng(3).random((5, 300), dtype=np.float32) * np.float32(9)
    out = np.zeros_like(rows)
    weighed[(5, 5), (64, 1)](rows, 3, out)
    padded = np.pad(rows.astype(np.float64), ((0, 0), (3, 3)), mode="edge")
    windows = [padded[:, k : k + 300] for k in range(7)]
    weights = [np.exp(-((window - rows) ** 2)) for window in windows]
    expected = sum(a * b for a, b in zip(windows, weights, strict=True)) / sum(weights)
    np.testing.assert_allclose(out, expected, rtol=2e-5)


@cuda.jit
def only_beside_borders(a, out):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        if not (x > 1 and x < w - 2 and y > 0 and y < h - 1):
            out[y, x] = a[y, x] * 3 + 1


@cuda.jit
def all_but_some(n, low, high, out):
    i = cuda.grid(1)
    if i < n and not (i + low >= 0 and high > i):
        out[i] += i + 1


@pytest.mark.parametrize("block", BLOCKS)
def test_threads_on_either_side(block):
    for shape in [*SHAPES, (9, 9)]:
        launch_over(only_beside_borders, shape, block, image(shape), np.zeros(shape, np.int64))


def test_threads_on_either_side_of_any_range():
    ends = [0, 1, 5, 30, 31, 32, 33, 64, 99, 100, 2**62, -1, -(2**62), 2**63 - 1, -(2**63)]
    for low in ends:
        for high in ends:
            run(all_but_some, 4, 32, 100, np.int64(low), np.int64(high), np.zeros(100, np.int64))
