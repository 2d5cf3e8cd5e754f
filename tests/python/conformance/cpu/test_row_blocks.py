"""Loops whose bounds or conditions are the same for a row of a block: the CPU runs each row as a block of its own.

The oracle is the kernel run by CPython. Blocks have one row or several; some rows are short or do not fill a vector.
"""

import numpy as np
import pytest
from harness import run
from weft import _weft, cuda

BLOCKS = [(16, 4), (64, 1), (1, 8), (37, 3), (8, 4, 2)]


def grid_over(extents, block):
    return tuple(-(-extent // size) + 1 for extent, size in zip(extents, block, strict=False))


def features(kernel):
    return {name for _, _, names in _weft.plan_features(kernel) for name in names}


@cuda.jit(device=True)
def row_of_block():
    return cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.int32)


@cuda.jit
def triangle_times(a, b, out):
    x, y = cuda.grid(2)
    if x < b.shape[1] and y < a.shape[0]:
        total = 0
        for k in range(y + 1):
            total += a[y, k] * b[k, x]
        out[y, x] = total


@pytest.mark.parametrize("block", BLOCKS)
def test_bound_of_the_row(block):
    a, b = numbers(21, 21), numbers(21, 45, seed=2)
    run(triangle_times, grid_over((45, 21), block), block, a, b, np.zeros((21, 45), np.int64))


@cuda.jit
def window(image, weights, bias, stride, out):
    c = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    x = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    z = cuda.blockIdx.z * cuda.blockDim.z + cuda.threadIdx.z
    height, width, channels = image.shape
    n, rows, columns, _ = out.shape
    if c < channels and x < columns and z // rows < n:
        total = bias[c] * (z // rows + 1)
        for j in range(weights.shape[0]):
            row = z % rows * stride - 1 + j
            if row >= 0 and row < height:
                for i in range(weights.shape[1]):
                    column = x * stride - 1 + i
                    if column >= 0 and column < width:
                        total += weights[j, i, c] * image[row, column, c]
                    else:
                        total -= 1
        out[z // rows, z % rows, x, c] = total


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("stride", [1, 2])
def test_conditions_of_the_row(block, stride):
    image, weights, bias = numbers(9, 7, 40), numbers(3, 3, 40, seed=2), numbers(40, seed=3)
    rows, columns = (-(-extent // stride) for extent in image.shape[:2])
    grid = (*grid_over((40, columns), block[:2]), 2 * rows)
    run(window, grid, block, image, weights, bias, stride, np.zeros((2, rows, columns, 40), np.int64))


@cuda.jit
def until(image, ends, out):
    x, y = cuda.grid(2)
    if y >= image.shape[0]:
        return
    if ends[y] < 0:
        if x == 0:
            out[y, 0] = -7
        return
    if x >= image.shape[2]:
        return
    total = 0
    for k in range(image.shape[1]):
        if k >= ends[y]:
            break
        if k % (y + 2) == 1:
            continue
        total += image[y, k, x] * (k + 1)
    out[y, x] = total


@pytest.mark.parametrize("block", BLOCKS)
def test_jumps_of_the_row(block):
    image = numbers(11, 6, 50)
    ends = np.array([0, 6, -1, 3, 9, 1, 2, -5, 4, 5, 6], np.int32)
    run(until, grid_over((50, 11), block), block, image, ends, np.full((11, 50), 3, np.int64))


@cuda.jit
def row_counts(a, counts, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        total = 0
        for k in range(y % 3, a.shape[0], y + 1):
            total += a[k, x]
        cuda.atomic.add(counts, y, total)
        cuda.atomic.max(out, x, total)


@pytest.mark.parametrize("block", BLOCKS)
def test_atomics_after_a_loop(block):
    a = numbers(13, 33)
    counts, least = np.zeros(13, np.int64), np.full(33, -(10**6), np.int64)
    run(row_counts, grid_over((33, 13), block), block, a, counts, least)


@cuda.jit
def calls_for_its_row(a, out):
    x = cuda.grid(2)[0]
    y = row_of_block()
    if x < a.shape[1] and y < a.shape[0]:
        total = 0
        for k in range(y + 1):
            total += a[k, x] * (cuda.threadIdx.y + 1)
        out[y, x] = total


@pytest.mark.parametrize("block", BLOCKS)
def test_position_in_a_device_function(block):
    a = numbers(13, 33)
    run(calls_for_its_row, grid_over((33, 13), block), block, a, np.zeros((13, 33), np.int64))


@pytest.mark.cpu
def test_rows_are_blocks():
    a = np.zeros((5, 40), np.int32)
    triangle_times[(1, 1), (64, 8)](a[:, :5], a, np.zeros((5, 40), np.int64))
    window[(1, 5, 5), (64, 1)](np.zeros((5, 5, 40), np.int32), np.zeros((3, 3, 40), np.int32), a[0], 1,
                               np.zeros((1, 5, 5, 40), np.int64))  # fmt: skip
    calls_for_its_row[(1, 1), (64, 8)](a, np.zeros((5, 40), np.int64))
    assert "row-as-block" in features(triangle_times)
    assert "row-as-block" in features(window)
    assert "row-as-block" not in features(calls_for_its_row)
