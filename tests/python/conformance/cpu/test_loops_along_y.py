"""Loops whose first index grows along `y` of a block: the rows of threads execute the same iteration."""

import numpy as np
import pytest
from harness import run
from weft import cuda

SHAPES = [(32, 8), (16, 3), (1, 5), (33, 2), (8, 4, 2), (64, 1)]


@cuda.jit
def column_sums(a, out):
    partial = cuda.shared.array((16, 64), np.int64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * cuda.blockDim.x + tx
    total = 0
    if x < a.shape[1]:
        for y in range(ty, a.shape[0], cuda.blockDim.y):
            total += a[y, x] * (y + 1)
    partial[ty, tx] = total
    cuda.syncthreads()
    if ty == 0 and cuda.threadIdx.z == 0 and x < a.shape[1]:
        total = 0
        for k in range(cuda.blockDim.y):
            total += partial[k, tx]
        out[x] = total


@pytest.mark.parametrize("block", SHAPES)
@pytest.mark.parametrize("rows", [0, 1, 7, 40])
def test_sums_of_columns(block, rows):
    a = np.random.default_rng(rows).integers(-9, 10, (rows, 50))
    got = run(column_sums, -(-50 // block[0]), block, a, np.full(50, 77))[1]
    np.testing.assert_array_equal(got, (a * np.arange(1, rows + 1)[:, None]).sum(axis=0))


@cuda.jit
def plane(a, out):
    first_x, first_y = cuda.grid(2)
    step_x, step_y = cuda.gridsize(2)
    for y in range(first_y, a.shape[0], step_y):
        for x in range(first_x, a.shape[1], step_x):
            out[y, x] += 3 * a[y, x] + y - x


@pytest.mark.parametrize("block", [(32, 8), (16, 3), (1, 5), (64, 1)])
@pytest.mark.parametrize("grid", [(1, 1), (2, 3)])
def test_loops_over_a_plane(grid, block):
    a = np.random.default_rng(block).integers(-9, 10, (37, 70))
    got = run(plane, grid, block, a, np.ones_like(a))[1]
    y, x = np.indices(a.shape)
    np.testing.assert_array_equal(got, 3 * a + y - x + 1)


@cuda.jit
def patterns(image, codes, counts):
    histogram = cuda.shared.array(4, np.int32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if ty == 0 and tx < 4:
        histogram[tx] = 0
    cuda.syncthreads()
    height, width = image.shape
    x = cuda.blockIdx.x * cuda.blockDim.x + tx
    for y in range(cuda.blockIdx.y * 16 + ty, min((cuda.blockIdx.y + 1) * 16, height), cuda.blockDim.y):
        if x < width:
            code = 0
            if image[max(y - 1, 0), x] >= image[y, x]:
                code |= 1
            if image[y, min(x + 1, width - 1)] >= image[y, x]:
                code |= 2
            codes[y, x] = code
            cuda.atomic.add(histogram, code, 1)
    cuda.syncthreads()
    if ty == 0 and tx < 4:
        cuda.atomic.add(counts, tx, histogram[tx])


@pytest.mark.parametrize("block", [(32, 8), (16, 3), (4, 16)])
@pytest.mark.parametrize("shape", [(16, 32), (45, 70), (1, 3)])
def test_clamped_neighbors_and_atomics(shape, block):
    image = np.random.default_rng(shape).integers(0, 9, shape).astype(np.uint8)
    up = np.pad(image, ((1, 0), (0, 0)), mode="edge")[:-1]
    right = np.pad(image, ((0, 0), (0, 1)), mode="edge")[:, 1:]
    codes = (up >= image) + 2 * (right >= image)
    grid = (-(-shape[1] // block[0]), -(-shape[0] // 16))
    got = run(patterns, grid, block, image, np.zeros(shape, np.uint8), np.zeros(4, np.int32))
    np.testing.assert_array_equal(got[1], codes)
    np.testing.assert_array_equal(got[2], np.bincount(codes.ravel(), minlength=4))


@cuda.jit
def other_starts(a, out, which):
    """The first thread of the block does not have the least index, or indices differ in a row."""
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    if which == 0:
        for y in range(3 - ty, a.shape[0], 4):
            cuda.atomic.add(out, (y, tx), a[y, tx])
    elif which == 1:
        for y in range(2 + ty - tz, a.shape[0], 4):
            cuda.atomic.add(out, (y, tx), a[y, tx])
    elif which == 2:
        for y in range(4 + ty - tx, a.shape[0], 4):
            cuda.atomic.add(out, (y, tx), a[y, tx])
    elif which == 3:
        for y in range(4 + ty - tx, a.shape[0], 4):
            cuda.atomic.add(out, (y + tx - 3, tx), a[y + tx - 3, tx] * y)
    else:
        for y in range(ty * ty, a.shape[0], 4):
            cuda.atomic.add(out, (y, tx), a[y, tx])


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("rows", range(2, 12))
def test_other_starts(which, rows):
    a = np.random.default_rng(rows).integers(1, 10, (rows, 4))
    expected = np.zeros_like(a)
    for tz, ty, tx in np.ndindex(2, 4, 4):
        start = [3 - ty, 2 + ty - tz, 4 + ty - tx, 4 + ty - tx, ty * ty][which]
        for y in range(start, rows, 4):
            if which == 3:
                expected[y + tx - 3, tx] += a[y + tx - 3, tx] * y
            else:
                expected[y, tx] += a[y, tx]
    got = run(other_starts, 1, (4, 4, 2), a, np.zeros_like(a), which)[1]
    np.testing.assert_array_equal(got, expected)


@cuda.jit
def changing(a, bounds, out):
    """Bound and step that threads load, and that differ between them or change."""
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    n = 0
    for y in range(ty, bounds[ty], 2):
        n += a[y, tx]
    for y in range(ty, a.shape[0], 1 + ty):
        n += 2 * a[y, tx]
    y = ty
    end = a.shape[0]
    while y < end:
        n += 3 * a[y, tx]
        end -= 1
        y += 2
    out[ty, tx] = n


def test_bounds_and_steps_that_differ():
    a = np.random.default_rng(3).integers(-9, 10, (19, 8))
    bounds = np.array([19, 3, 0, 12])
    expected = np.zeros((4, 8), np.int64)
    for ty in range(4):
        expected[ty] += a[ty : bounds[ty] : 2].sum(axis=0) + 2 * a[ty :: 1 + ty].sum(axis=0)
        y, end = ty, 19
        while y < end:
            expected[ty] += 3 * a[y]
            y, end = y + 2, end - 1
    got = run(changing, 1, (8, 4), a, bounds, np.zeros_like(expected))[2]
    np.testing.assert_array_equal(got, expected)


@cuda.jit
def scaled_row(a, factor, out):
    """The index of the thread in its block, in any shape."""
    row = cuda.shared.array(512, np.int64)
    threads = cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z
    tid = cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z)
    n = a.shape[1]
    for i in range(tid, n, threads):
        row[i] = a[cuda.blockIdx.x, i]
    cuda.syncthreads()
    for k in range(3):
        for i in range(tid + k, n, threads):
            row[i] *= factor[k]
        cuda.syncthreads()
    total = 0
    for i in range(tid, n, threads):
        out[cuda.blockIdx.x, i] = row[n - 1 - i]
        total += row[i]
    cuda.atomic.add(out, (cuda.blockIdx.x, n), total)


@pytest.mark.parametrize("block", SHAPES)
@pytest.mark.parametrize("n", [1, 31, 200, 512])
def test_index_in_the_block(block, n):
    a = np.random.default_rng(n).integers(-9, 10, (2, n))
    factor = np.array([2, -3, 5])
    row = a.copy()
    for k, by in enumerate(factor):
        row[:, k:] *= by
    got = run(scaled_row, 2, block, a, factor, np.zeros((2, n + 1), np.int64))[2]
    np.testing.assert_array_equal(got[:, :n], row[:, ::-1])
    np.testing.assert_array_equal(got[:, n], row.sum(axis=1))
