"""Branches that fill shared memory for a box of the block's threads, such as the halo of a tile."""

import numpy as np
import pytest
from harness import run
from weft import cuda

R = 2


def numbers(*shape):
    return np.random.default_rng(shape).integers(-50, 50, shape)


@cuda.jit
def corners(a, out):
    tile = cuda.shared.array((8 + 2 * R, 16 + 2 * R), np.int64)
    h, w = a.shape
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x = cuda.blockIdx.x * 16 + tx
    y = cuda.blockIdx.y * 8 + ty
    column = min(x, w - 1)
    row = min(y, h - 1)
    tile[ty + R, tx + R] = a[row, column]
    if tx < R:
        left = max(x - R, 0)
        tile[ty + R, tx] = a[row, min(left, w - 1)]
        tile[ty + R, tx + 16 + R] = a[row, min(x + 16, w - 1)]
    if ty < R:
        tile[ty, tx + R] = a[min(max(y - R, 0), h - 1), column]
        tile[ty + 8 + R, tx + R] = a[min(y + 8, h - 1), column]
        if tx < R:
            for side in range(2):
                at = min(max(x - R + side * (16 + R), 0), w - 1)
                tile[ty, tx + side * (16 + R)] = a[min(max(y - R, 0), h - 1), at]
                tile[ty + 8 + R, tx + side * (16 + R)] = a[min(y + 8, h - 1), at]
    cuda.syncthreads()
    if x < w and y < h:
        total = 0
        for i in range(2 * R + 1):
            for j in range(2 * R + 1):
                total += tile[ty + i, tx + j]
        out[y, x] = total


@pytest.mark.parametrize("shape", [(1, 1), (8, 16), (9, 33), (30, 47), (7, 128)])
def test_boxes_of_a_halo_with_corners(shape):
    a = numbers(*shape)
    padded = np.pad(a, R, mode="edge")
    windows = [padded[i : i + shape[0], j : j + shape[1]] for i in range(2 * R + 1) for j in range(2 * R + 1)]
    expected = sum(windows)
    grid = (-(-shape[1] // 16), -(-shape[0] // 8))
    np.testing.assert_array_equal(run(corners, grid, (16, 8), a, np.zeros_like(a))[1], expected)


@cuda.jit
def upper_box(a, out, low, rows):
    s = cuda.shared.array(1024, np.int64)
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    width, height = cuda.blockDim.x, cuda.blockDim.y
    t = (tz * height + ty) * width + tx
    s[t] = -a[t]
    if tx >= low and ty < rows and tz != 1:
        s[t] = a[t] + s[t] * 3
    value = s[t]
    if tx < 3:
        s[t] += tz
        last = tx + 7
    else:
        last = 0
    if ty >= rows:
        s[t] += 1000
    if ty >= rows and tx == width - 1:
        s[t] += 5
    out[t] = s[t] * 10 + value + last


@pytest.mark.parametrize("block", [(1, 1, 1), (5, 3, 2), (16, 4, 3), (33, 7, 1), (64, 2, 2)])
@pytest.mark.parametrize(("low", "rows"), [(0, 0), (2, 1), (4, 2), (40, 9), (-(1 << 62), 1 << 62)])
def test_boxes_in_three_dimensions(block, low, rows):
    a = numbers(int(np.prod(block)))
    tz, ty, tx = np.indices(block[::-1])
    a3 = a.reshape(block[::-1])
    s = np.where((tx >= low) & (ty < rows) & (tz != 1), a3 - 3 * a3, -a3)
    value = s.copy()
    s = s + np.where(tx < 3, tz, 0) + np.where(ty >= rows, 1000, 0)
    s = s + np.where((ty >= rows) & (tx == block[0] - 1), 5, 0)
    expected = s * 10 + value + np.where(tx < 3, tx + 7, 0)
    out = run(upper_box, 1, block, a, np.zeros_like(a), low, rows)[1]
    np.testing.assert_array_equal(out.reshape(block[::-1]), expected)


@cuda.jit
def under_masks(a, out, steps):
    s = cuda.shared.array((18, 34), np.int64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    width, height = cuda.blockDim.x, cuda.blockDim.y
    own = a[ty, tx]
    s[ty + 1, tx + 1] = 0
    if tx < 1:
        s[ty + 1, 0] = s[ty + 1, width + 1] = 0
    if ty < 1:
        s[0, tx + 1] = s[height + 1, tx + 1] = 0
    cuda.syncthreads()
    if own % 7 == 0:
        return
    for step in range(steps):
        s[ty + 1, tx + 1] = own
        if tx < 1:
            s[ty + 1, 0] = step
            s[ty + 1, width + 1] = -step
        if ty < 1:
            s[0, tx + 1] = 2 * step
            s[height + 1, tx + 1] = tx
        cuda.syncthreads()
        around = s[ty, tx + 1] + s[ty + 2, tx + 1] + s[ty + 1, tx] + s[ty + 1, tx + 2]
        cuda.syncthreads()
        own += around % 5
    out[ty, tx] = own


@pytest.mark.parametrize("block", [(1, 1), (3, 5), (16, 16), (32, 8)])
def test_boxes_in_loops_and_under_masks(block):
    width, height = block
    a = numbers(height, width)
    own, runs = a.copy(), a % 7 != 0
    tx = np.arange(width)
    s = np.zeros((height + 2, width + 2), np.int64)
    for step in range(5):
        s[1:-1, 1:-1][runs] = own[runs]
        s[1:-1, 0][runs[:, 0]], s[1:-1, -1][runs[:, 0]] = step, -step
        s[0, 1:-1][runs[0]], s[-1, 1:-1][runs[0]] = 2 * step, tx[runs[0]]
        own += (s[:-2, 1:-1] + s[2:, 1:-1] + s[1:-1, :-2] + s[1:-1, 2:]) % 5
    out = run(under_masks, 1, block, a, np.zeros_like(a), 5)[1]
    np.testing.assert_array_equal(out, np.where(runs, own, 0))
