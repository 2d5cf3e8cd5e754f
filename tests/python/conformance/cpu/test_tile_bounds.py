"""Tiles with conditions that bound the rows of a block along `y`; blocks near a boundary and far from all of them."""

import numpy as np
import pytest
from harness import run
from weft import cuda

BLOCKS = [(16, 16), (16, 5), (16, 4, 2), (13, 9), (16, 1, 3), (32, 4)]


def values(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


@cuda.jit
def diffused(plate, steps, out):
    tile = cuda.shared.array((16, 33), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    height, width = plate.shape
    x = cuda.blockIdx.x * 10 + tx - 3
    y = cuda.blockIdx.y * 10 + ty - 3
    inside = x >= 0 and x < width and y >= 0 and y < height
    source = np.float32(0)
    if cuda.threadIdx.z == 0:
        tile[ty, tx] = -1
        if inside:
            tile[ty, tx] = plate[y, x]
            source = plate[y, x]
    cuda.syncthreads()
    west = tx - 1 if x > 0 else tx
    east = tx + 1 if x < width - 1 else tx
    north = ty - 1 if y > 0 else ty
    south = ty + 1 if y < height - 1 else ty
    value = np.float32(0)
    for step in range(steps):
        known = (
            inside
            and step < tx
            and tx < cuda.blockDim.x - 1 - step
            and step < ty
            and ty < cuda.blockDim.y - 1 - step
            and cuda.threadIdx.z == 0
        )
        if known:
            value = tile[ty, east] + 2 * tile[ty, west] + 3 * tile[south, tx] + 4 * tile[north, tx] + source
        cuda.syncthreads()
        if known:
            tile[ty, tx] = value
        cuda.syncthreads()
    if inside and cuda.threadIdx.z == 0 and 3 <= tx < 13 and 3 <= ty < 13:
        out[y, x] = tile[ty, tx]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(37, 45), (10, 3), (1, 40)])
def test_steps_in_a_tile(block, shape):
    h, w = shape
    grid = (-(-w // 10), -(-h // 10))
    run(diffused, grid, block, values(1, h, w), 2, np.zeros((h, w), np.float32))


@cuda.jit
def bounded(a, low, high, start, out):
    """Bounds on rows: by arguments, with swapped operands, with large numbers, and combined with conditions that are no
    bounds."""
    tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    y = start + ty
    x = cuda.blockIdx.x * 16 + tx
    tile[ty % 16, tx % 16] = 0
    cuda.syncthreads()
    if low <= ty and not (ty > high) and tx < 15:
        tile[ty % 16, tx % 16] = 1 + ty
    cuda.syncthreads()
    total = tile[(ty + 1) % cuda.blockDim.y, tx]
    cuda.syncthreads()
    if y < high and 16 - ty > low and ty * 2 < high + 9 and x < a.shape[1] and ty < a.shape[0]:
        tile[ty % 16, tx % 16] = a[ty, x] + 100 * total
    cuda.syncthreads()
    if ty >= tx and x < out.shape[1] and ty < out.shape[0] and cuda.threadIdx.z == 0:
        out[ty, x] += tile[ty % 16, tx % 16]
    if ty != 3 and ty + tx < 20 and x < out.shape[1] and ty < out.shape[0] and cuda.threadIdx.z == 0:
        out[ty, x] += 10000 * tile[ty % 16, tx % 16]


@pytest.mark.parametrize("block", [(16, 16), (16, 5), (13, 9), (16, 1)])
@pytest.mark.parametrize(
    ("low", "high", "start"),
    [
        (0, 15, 0),
        (3, 9, 1),
        (9, 3, 0),
        (-5, 100, -3),
        (2**31 - 1, -(2**31), 0),
        (-(2**62), 2**62, 2**62),
        (1, 2**63 - 20, 2**63 - 9),
    ],
)
def test_bounds_of_many_kinds(block, low, high, start):
    run(bounded, (2, 1), block, values(2, 12, 27), low, high, start, np.zeros((12, 27), np.float32))


@cuda.jit
def planes(a, out):
    """Rows of several planes, whose bounds along `y` depend on the plane."""
    tile = cuda.shared.array((64, 16), np.float32)
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    row = tz * cuda.blockDim.y + ty
    x = cuda.blockIdx.x * 16 + tx
    inside = ty > tz and ty < cuda.blockDim.y - tz and x < a.shape[1] and row < a.shape[0]
    tile[row, tx] = 1
    cuda.syncthreads()
    if inside:
        tile[row, tx] = a[row, x] + a[row, max(x - 1, 0)] + a[row, min(x + 1, a.shape[1] - 1)]
    cuda.syncthreads()
    if row < out.shape[0] and x < out.shape[1]:
        out[row, x] = tile[row, 15 - tx]


@pytest.mark.parametrize("block", [(16, 8, 4), (16, 3, 5), (16, 16, 1), (16, 1, 7)])
def test_planes_of_rows(block):
    rows = block[1] * block[2]
    for height in (rows, max(rows - 3, 1)):
        run(planes, 3, block, values(3, height, 44), np.zeros((rows, 44), np.float32))


@cuda.jit
def clamped(a, out):
    """Clamped neighbors along both axes: no thread of the inner blocks is near a boundary."""
    tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    h, w = a.shape
    x, y = cuda.blockIdx.x * 16 + tx, cuda.blockIdx.y * 16 + ty
    if x < w and y < h:
        up, down = max(y - 1, 0), min(y + 1, h - 1)
        left, right = max(x - 1, 0), min(x + 2, w - 1)
        tile[ty, tx] = a[up, x] + 2 * a[down, x] + 3 * a[y, left] + 4 * a[y, right]
    cuda.syncthreads()
    if x < w and y < h:
        out[y, x] = tile[ty, tx] + 1000 * tile[ty, max(tx - 1, 0)]


@pytest.mark.parametrize("shape", [(48, 64), (47, 50), (16, 16), (3, 70), (70, 1)])
@pytest.mark.parametrize("block", [(16, 16), (16, 11), (11, 16)])
def test_blocks_near_borders(shape, block):
    h, w = shape
    run(clamped, (-(-w // 16), -(-h // 16)), block, values(4, h, w), np.zeros((h, w), np.float32))
