"""Tiles of matrices in shared memory, with prefetched tiles of the next iteration: blocks of all shapes, rows that end
within a tile, unusual loop counters, and arrays that are both read and written."""

import numpy as np
import pytest
from weft import cuda

TILE = 16
DTYPES = [np.float32, np.float64, np.int32, np.uint8]


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(0, 6, shape).astype(dtype)


def blocks(*extents, tile=TILE):
    return tuple(-(-extent // tile) for extent in extents)


def product_of(tile, dtype, padding=0):
    zero = dtype(0)

    @cuda.jit
    def product(a, b, out):
        left = cuda.shared.array((tile, tile + padding), dtype)
        right = cuda.shared.array((tile, tile + padding), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = zero
        for start in range(0, a.shape[1], tile):
            inside = row < a.shape[0] and start + tx < a.shape[1]
            left[ty, tx] = a[row, start + tx] if inside else zero
            right[ty, tx] = b[start + ty, column] if start + ty < b.shape[0] and column < b.shape[1] else zero
            cuda.syncthreads()
            for k in range(tile):
                total += left[ty, k] * right[k, tx]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = total

    return product


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("tile", "padding"), [(8, 0), (16, 0), (16, 1), (32, 0)])
@pytest.mark.parametrize("shape", [(0, 16, 16), (16, 0, 16), (1, 1, 1), (32, 64, 48), (33, 70, 47)])
def test_products(dtype, tile, padding, shape):
    rows, inner, columns = shape
    a, b = values(1, rows, inner, dtype=dtype), values(2, inner, columns, dtype=dtype)
    out = values(3, rows, columns, dtype=dtype)
    if rows and columns:
        product_of(tile, dtype, padding)[blocks(columns, rows, tile=tile), (tile, tile)](a, b, out)
        np.testing.assert_array_equal(out, (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype))


@cuda.jit
def sums_of_tiles(a, out):
    """Threads of blocks of any shape, with several planes, sum a tile that all of them load."""
    tile = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    step = cuda.blockDim.y
    total = np.float32(0)
    for start in range(0, a.shape[0], TILE):
        for y in range(ty + tz * step, TILE, step * cuda.blockDim.z):
            for x in range(tx, TILE, cuda.blockDim.x):
                tile[y, x] = a[start + y, cuda.blockIdx.x * TILE + x]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile[k, tx % TILE] * tile[(ty + tz) % TILE, k]
        cuda.syncthreads()
    out[cuda.blockIdx.x, tz, ty, tx] = total


@pytest.mark.parametrize(
    "block", [(16, 16, 1), (16, 8, 2), (16, 4, 3), (16, 12, 2), (8, 8, 4), (5, 3, 2), (32, 2, 1), (1, 1, 1)]
)
def test_blocks_of_all_shapes(block):
    a = values(4, 5 * TILE, 3 * TILE)
    x, y, z = block
    out = np.zeros((3, z, y, x), np.float32)
    sums_of_tiles[3, block](a, out)
    tiles = a.reshape(5, TILE, 3, TILE)
    square = np.einsum("skbj,sibk->bij", tiles, tiles)
    expected = [
        [[[square[b, (j + k) % TILE, i % TILE] for i in range(x)] for j in range(y)] for k in range(z)]
        for b in range(3)
    ]
    np.testing.assert_array_equal(out, np.array(expected, np.float32))


@cuda.jit
def rows_in_planes(a, b, out):
    """A product whose blocks have planes: each plane takes every n-th tile."""
    left = cuda.shared.array((2, TILE, TILE), np.float32)
    right = cuda.shared.array((2, TILE, TILE), np.float32)
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    column, row = cuda.blockIdx.x * TILE + tx, cuda.blockIdx.y * TILE + ty
    total = np.float32(0)
    for start in range(0, a.shape[1], 2 * TILE):
        left[tz, ty, tx] = a[row, start + tz * TILE + tx]
        right[tz, ty, tx] = b[start + tz * TILE + ty, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[tz, ty, k] * right[tz, k, tx]
        cuda.syncthreads()
    out[tz, row, column] = total


def test_planes():
    a, b = values(5, 32, 64), values(6, 64, 48)
    out = np.zeros((2, 32, 48), np.float32)
    rows_in_planes[(3, 2), (TILE, TILE, 2)](a, b, out)
    np.testing.assert_array_equal(out.sum(axis=0), a @ b)
    even = (np.arange(64) // TILE) % 2 == 0
    np.testing.assert_array_equal(out[0], a[:, even] @ b[even])


@cuda.jit
def counted_by_hand(a, b, out, first, step):
    left = cuda.shared.array((TILE, TILE), np.float32)
    right = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = np.float32(0)
    start = first
    while 0 <= start < a.shape[1]:
        if start == 3 * TILE:
            start += step
            continue
        left[ty, tx] = a[row, start + tx]
        right[ty, tx] = b[start + ty, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
        if start == 5 * TILE:
            break
        start += step
    out[row, column] = total


@pytest.mark.parametrize(
    ("first", "step", "tiles"),
    [(0, 16, [0, 1, 2, 4, 5]), (80, -16, [5]), (64, -16, [4, 2, 1, 0]), (96, 9999, [6]), (-1, 1, [])],
)
def test_turns_that_are_counted_by_hand(first, step, tiles):
    a, b = values(7, 32, 112), values(8, 112, 32)
    out = np.ones((32, 32), np.float32)
    counted_by_hand[(2, 2), (TILE, TILE)](a, b, out, first, step)
    taken = np.isin(np.arange(112) // TILE, tiles)
    np.testing.assert_array_equal(out, a[:, taken] @ b[taken])


def test_rows_that_go_backwards():
    a, b = values(9, 32, 64), values(10, 64, 32)
    out = np.zeros((32, 32), np.float32)
    product_of(TILE, np.float32)[(2, 2), (TILE, TILE)](a[::-1, ::-1], b[::-1], out[:, ::-1])
    np.testing.assert_array_equal(out[:, ::-1], a[::-1, ::-1] @ b[::-1])


@cuda.jit
def running_sums(a, turns):
    """Each iteration reads rows that the previous one has written: the array is both input and output."""
    tile = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column = cuda.blockIdx.x * TILE + tx
    for t in range(turns):
        tile[ty, tx] = a[t * TILE + ty, column]
        cuda.syncthreads()
        a[(t + 1) * TILE + ty, column] += tile[TILE - 1 - ty, tx]
        cuda.syncthreads()


def test_an_array_that_is_read_and_written():
    a = values(11, 6 * TILE, 2 * TILE)
    expected = a.copy()
    for t in range(5):
        expected[(t + 1) * TILE : (t + 2) * TILE] += expected[t * TILE : (t + 1) * TILE][::-1]
    running_sums[2, (TILE, TILE)](a, 5)
    np.testing.assert_array_equal(a, expected)


@cuda.jit
def until_it_is_zero(a, b, counts, out):
    """The trip count is loaded, and a step is divided by a value that may be zero after the last iteration."""
    tile = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    left = counts[cuda.blockIdx.x]
    while left > 0:
        tile[ty, tx] = a[(48 // left) * TILE // 16 + ty, tx] if b[left - 1] > 0 else np.float32(1)
        cuda.syncthreads()
        for k in range(TILE):
            total += tile[ty, k] * tile[k, tx]
        cuda.syncthreads()
        left -= 1
    out[cuda.blockIdx.x, ty, tx] = total


def test_divisors_that_become_zero():
    a, b, counts = values(12, 64, TILE), np.array([1, 0, 2, 3], np.int32), np.array([0, 4, 1], np.int32)
    out = np.empty((3, TILE, TILE), np.float32)
    until_it_is_zero[3, (TILE, TILE)](a, b, counts, out)
    for block, count in enumerate(counts):
        expected = np.zeros((TILE, TILE), np.float32)
        for left in range(count, 0, -1):
            tile = a[48 // left : 48 // left + TILE] if b[left - 1] > 0 else np.ones((TILE, TILE), np.float32)
            expected += tile @ tile
        np.testing.assert_array_equal(out[block], expected)
