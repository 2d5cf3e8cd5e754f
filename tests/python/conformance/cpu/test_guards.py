"""Conditions on a thread loop that make tests of indices redundant, and conditions that seem to but do not."""

import numpy as np
import pytest
from weft import cuda


def values(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def at_least(low):
    @cuda.jit
    def kernel(a, b, out, kept):
        tile = cuda.shared.array((16, 16), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x = cuda.blockIdx.x * 12 + tx - 2
        y = cuda.blockIdx.y * 12 + ty - 2
        h, w = a.shape
        inside = x >= 0 and x < w and y < h and y >= low
        source = np.float32(0)
        tile[ty, tx] = 0
        if inside:
            tile[ty, tx] = a[y, x]
            source = b[y, x - 1]
        cuda.syncthreads()
        if inside and 2 <= tx and tx < 14:
            out[y + 2, x] = tile[ty, tx] + 100 * source + 10000 * tile[ty, tx - 1]
        if inside:
            kept[y + 2, x] = b[y, x]

    return kernel


def not_below(low):
    @cuda.jit
    def kernel(a, b, out, kept):
        tile = cuda.shared.array((16, 16), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x = cuda.blockIdx.x * 12 + tx - 2
        y = cuda.blockIdx.y * 12 + ty - 2
        h, w = a.shape
        tile[ty, tx] = 0
        if not (low > y or y >= h) and 0 <= x < w:
            tile[ty, tx] = a[y, x]
        cuda.syncthreads()
        if 2 <= tx < 14 and 0 <= x < w and low - 1 < y < h:
            out[y + 2, x] = tile[ty, tx] + 100 * b[y, x - 1] + 10000 * tile[ty, tx - 1]
        if low <= y and h > y and 0 <= x < w:
            kept[y + 2, x] = b[y, x]

    return kernel


@pytest.mark.parametrize("make", [at_least, not_below])
@pytest.mark.parametrize("low", [-2, -1, 0, 1])
@pytest.mark.parametrize("shape", [(5, 9), (12, 12), (29, 50)])
@pytest.mark.parametrize("block", [(16, 16), (13, 9)])
def test_an_index_that_a_row_is_asked_for(make, low, shape, block):
    h, w = shape
    a, b = values(1, h, w), values(2, h, w)
    grid = (-(-w // 12) + 1, -(-h // 12) + 1)
    # Rows from -2; a negative index counts from the end.
    out, kept = np.zeros((h + 4, w), np.float32), np.zeros((h + 4, w), np.float32)
    expected_out, expected_kept = out.copy(), kept.copy()
    for by in range(grid[1]):
        for bx in range(grid[0]):
            tile = np.zeros((16, 16), np.float32)
            at = [(ty, tx) for ty in range(block[1]) for tx in range(block[0])]
            places = {(ty, tx): (by * 12 + ty - 2, bx * 12 + tx - 2) for ty, tx in at}
            inside = [k for k in at if 0 <= places[k][1] < w and low <= places[k][0] < h]
            for k in inside:
                tile[k] = a[places[k]]
            for ty, tx in inside:
                y, x = places[ty, tx]
                if 2 <= tx < 14:
                    expected_out[y + 2, x] = tile[ty, tx] + 100 * b[y, x - 1] + 10000 * tile[ty, tx - 1]
                expected_kept[y + 2, x] = b[y, x]
    make(low)[grid, block](a, b, out, kept)
    np.testing.assert_array_equal(kept, expected_kept)
    np.testing.assert_array_equal(out, expected_out)
