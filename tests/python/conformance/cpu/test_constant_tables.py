"""Loops over constant tables, arrays with a short last axis, and tiles with a halo: all sizes, compared with NumPy."""

import numpy as np
import pytest
from weft import cuda

DX = np.array([0, 1, 0, -1, 0, 2, -2], np.int32)
DY = np.array([0, 0, 1, 0, -1, 1, -3], np.int8)
SHARE = np.array([0.5, 1, 2, 3, 4, 5, 6], np.float32)


@cuda.jit
def gathered(a, out):
    dx = cuda.const.array_like(DX)
    dy = cuda.const.array_like(DY)
    share = cuda.const.array_like(SHARE)
    kept = cuda.local.array(7, np.float32)
    x, y = cuda.grid(2)
    height, width = a.shape
    if x < width and y < height:
        total = np.float32(0)
        for q in range(7):
            value = a[(y - dy[q]) % height, (x - dx[q]) % width]
            kept[q] = value
            total += share[q] * value
        for q in range(2, 7):
            total -= kept[q] * dx[q]
        out[y, x] = total + q


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 17), (33, 40)])
@pytest.mark.parametrize("block", [(16, 16), (32, 1), (1, 7), (5, 3)])
def test_neighbors_by_a_table(shape, block):
    height, width = shape
    a = (np.arange(height * width) % 23).astype(np.float32).reshape(shape)
    out = np.zeros(shape, np.float32)
    gathered[(-(-width // block[0]) + 1, -(-height // block[1])), block](a, out)
    y, x = np.mgrid[:height, :width]
    expected = np.zeros(shape)
    for q in range(7):
        value = a[(y - DY[q]) % height, (x - DX[q]) % width]
        expected += SHARE[q] * value
        if q >= 2:
            expected -= value * DX[q]
    np.testing.assert_array_equal(out, expected + 6)


@cuda.jit
def widened(a, out):
    """Variables that become float64 in the loop are converted between the counter's initialization and the loop."""
    dx = cuda.const.array_like(DX)
    x, y = cuda.grid(2)
    height, width = a.shape
    if x < width and y < height:
        along, q = np.float32(0), 9
        before = q
        for q in range(1, 7):
            along += a[y, (x - dx[q] + width) % width] * dx[q]
        q += 1
        out[y, x] = along + q * before


@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (5, 17), (33, 40)])
def test_variables_that_a_loop_widens(shape):
    height, width = shape
    a = (np.arange(height * width) % 23).astype(np.float32).reshape(shape)
    out = np.zeros(shape)
    widened[(-(-width // 16), height), (16, 1)](a, out)
    y, x = np.mgrid[:height, :width]
    expected = sum(a[y, (x - DX[q] + width) % width] * float(DX[q]) for q in range(1, 7))
    np.testing.assert_array_equal(out, expected + 63)


@cuda.jit
def turns_that_carry(out):
    steps = cuda.const.array_like(DX)
    i = cuda.grid(1)
    if i < out.size:
        q = i
        last = 10
        for q in range(1, 6):
            if steps[q] > 0:
                last = last * 3 + q
            else:
                last = last - steps[q - 1]
            for _ in range(q):
                last += steps[q]
        out[i] = last * 100 + q


def test_what_turns_leave_to_the_next_one():
    out = np.zeros(300, np.int64)
    turns_that_carry[3, 128](out)
    last = 10
    for q in range(1, 6):
        last = last * 3 + q if DX[q] > 0 else last - DX[q - 1]
        last += q * DX[q]
    np.testing.assert_array_equal(out, last * 100 + 5)


def make_colors():
    @cuda.jit
    def colors(picture, out, means):
        x, y = cuda.grid(2)
        height, width, channels = picture.shape
        if x >= width or y >= height:
            return
        total = 0
        for c in range(channels):
            near = 0
            for dx in range(-1, 2):
                near += picture[y, min(max(x + dx, 0), width - 1), c]
            out[y, x, c] = near // 3
            total += picture[y, x, c] * (c + 1)
        means[y, x] = total + picture.shape[2]

    return colors


@pytest.mark.parametrize("first", [1, 2, 3, 4, 5])
def test_any_number_of_colors_after_any_other(first):
    """The code is compiled for the first launch's number of colors, and correct for others."""
    kernel = make_colors()
    for channels in (first, 3, 1, 4, 2, 7, first):
        for shape in [(3, 5), (20, 33)]:
            picture = np.random.default_rng(channels).integers(0, 255, (*shape, channels)).astype(np.uint8)
            out, means = np.zeros_like(picture), np.zeros(shape, np.int64)
            kernel[(4, 2), (16, 16)](picture, out, means)
            wide = np.pad(picture.astype(np.int64), ((0, 0), (1, 1), (0, 0)), "edge")
            np.testing.assert_array_equal(out, (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) // 3)
            weights = np.arange(1, channels + 1)
            np.testing.assert_array_equal(means, (picture * weights).sum(axis=2) + channels)


def make_points():
    @cuda.jit
    def points(where, mass, out):
        tile = cuda.shared.array((32, 4), np.float32)
        i = cuda.grid(1)
        t = cuda.threadIdx.x
        n = where.shape[0]
        acc = np.float32(0)
        for start in range(0, n, cuda.blockDim.x):
            if start + t < n:
                for k in range(where.shape[1]):
                    tile[t, k] = where[start + t, k]
            cuda.syncthreads()
            if i < n:
                for j in range(min(cuda.blockDim.x, n - start)):
                    for k in range(where.shape[1]):
                        acc += abs(where[i, k] - tile[j, k])
            cuda.syncthreads()
        if i < n:
            out[i] = acc * mass[i]

    return points


@pytest.mark.parametrize("first", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 31, 32, 77])
def test_points_of_any_number_of_coordinates(first, n):
    kernel = make_points()
    for k in (first, 1, 3, 4, 2):
        where = np.random.default_rng(n).integers(-50, 50, (n, k)).astype(np.float32)
        mass, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        kernel[-(-n // 32), 32](where, mass, out)
        expected = np.abs(where[:, None] - where[None]).sum(axis=(1, 2)) * mass
        np.testing.assert_array_equal(out, expected)


@cuda.jit
def rims(a, out, turns):
    tile = cuda.shared.array((16, 16), np.int32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    height, width = a.shape
    x = cuda.blockIdx.x * 12 + tx - 2
    y = cuda.blockIdx.y * 12 + ty - 2
    inside = x >= 0 and x < width and y >= 0 and y < height
    if inside:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    west = tx - 1 if x > 0 else tx
    east = tx + 1 if x < width - 1 else tx
    north = ty - 1 if y > 0 else ty
    south = ty + 1 if y < height - 1 else ty
    value = 0
    for step in range(turns):
        known = inside and step < tx and tx < 15 - step and step < ty and ty < 15 - step
        if known:
            value = tile[ty, tx] + 2 * tile[ty, west] + 3 * tile[ty, east] + 5 * tile[north, tx] + 7 * tile[south, tx]
        cuda.syncthreads()
        if known:
            tile[ty, tx] = value
        cuda.syncthreads()
    if inside and 2 <= tx and tx < 14 and 2 <= ty and ty < 14:
        out[y, x] = value


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (12, 12), (13, 25), (40, 29)])
@pytest.mark.parametrize("turns", [1, 2])
def test_tiles_with_a_rim(shape, turns):
    height, width = shape
    a = np.random.default_rng(3).integers(-9, 9, shape).astype(np.int32)
    out = np.zeros(shape, np.int32)
    rims[(-(-width // 12), -(-height // 12)), (16, 16)](a, out, turns)
    here = a.astype(np.int64)
    for _ in range(turns):
        wide = np.pad(here, 1, "edge")
        here = here + 2 * wide[1:-1, :-2] + 3 * wide[1:-1, 2:] + 5 * wide[:-2, 1:-1] + 7 * wide[2:, 1:-1]
    np.testing.assert_array_equal(out, here)
