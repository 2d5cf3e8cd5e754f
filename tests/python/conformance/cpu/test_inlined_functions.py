"""Small device functions are inlined on the CPU: clamps of neighbors, loops and branches that return, local arrays, sum
counters, and functions that are not inlined."""

import numpy as np
import pytest
from weft import cuda


@cuda.jit(device=True)
def clamp(value, low, high):
    return max(low, min(value, high))


@cuda.jit(device=True)
def at(image, y, x):
    height, width = image.shape
    y = clamp(y, 0, height - 1)
    x = clamp(x, 0, width - 1)
    return image[y, x]


@cuda.jit
def blurred(image, out, radius):
    x, y = cuda.grid(2)
    if x < image.shape[1] and y < image.shape[0]:
        total = 0
        for dy in range(-radius, radius + 1):
            for dx in range(-2, 3):
                total += at(image, y + dy, x + dx) * (dx + 3)
        out[y, x] = total


@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (33, 5), (40, 70)])
@pytest.mark.parametrize("radius", [0, 1, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_clamps_in_functions(shape, radius, dtype):
    image = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
    out = np.zeros(shape, np.int64)
    blurred[(-(-shape[1] // 16), -(-shape[0] // 8)), (16, 8)](image, out, radius)
    y, x = np.mgrid[: shape[0], : shape[1]]
    expected = np.zeros(shape, np.int64)
    for dy in range(-radius, radius + 1):
        for dx in range(-2, 3):
            near = np.clip(y + dy, 0, shape[0] - 1), np.clip(x + dx, 0, shape[1] - 1)
            expected += image[near].astype(np.int64) * (dx + 3)
    np.testing.assert_array_equal(out, expected)


@cuda.jit(device=True)
def escapes_after(re, im, limit):
    z_re, z_im = 0.0, 0.0
    for turn in range(limit):
        z_re, z_im = z_re * z_re - z_im * z_im + re, 2 * z_re * z_im + im
        if z_re * z_re + z_im * z_im > 4:
            return turn
    return limit


@cuda.jit(device=True)
def kind_of(turn, limit):
    if turn == limit:
        return 0
    if turn % 2:
        if turn > 5:
            return 1
    else:
        return 2
    return 3


@cuda.jit
def escaped(out, limit):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        turn = escapes_after(-2 + x / 16, -1 + y / 16, limit)
        out[y, x] = turn * 10 + kind_of(turn, limit)


@pytest.mark.parametrize("limit", [0, 1, 30])
def test_functions_that_return_from_loops_and_branches(limit):
    out = np.zeros((32, 48), np.int32)
    escaped[(3, 4), (16, 8)](out, limit)
    for y, x in np.ndindex(out.shape):
        turn = escapes_after.py_func(-2 + x / 16, -1 + y / 16, limit)
        assert out[y, x] == turn * 10 + kind_of.py_func(turn, limit)


@cuda.jit(device=True)
def sorted_three(a, b, c):
    own = cuda.local.array(3, np.int32)
    own[0], own[1], own[2] = a, b, c
    for i in range(2):
        for j in range(2 - i):
            if own[j] > own[j + 1]:
                own[j], own[j + 1] = own[j + 1], own[j]
    return own[0], own[1], own[2]


@cuda.jit
def medians(x, out):
    i = cuda.grid(1)
    if i < x.size - 4:
        first = sorted_three(x[i], x[i + 1], x[i + 2])
        second = sorted_three(x[i + 2], x[i + 3], x[i + 4])
        least, middle, most = sorted_three(first[1], second[1], x[i + 2])
        out[i] = least * 10000 + middle * 100 + most


def test_functions_with_arrays_of_their_own():
    x = np.random.default_rng(2).integers(0, 100, 300).astype(np.int32)
    out = np.zeros(296, np.int32)
    medians[3, 128](x, out)
    for i in range(296):
        own = sorted([sorted(x[i : i + 3])[1], sorted(x[i + 2 : i + 5])[1], x[i + 2]])
        assert out[i] == own[0] * 10000 + own[1] * 100 + own[2]


@cuda.jit(device=True)
def add_up(bins, key, value):
    if value > 0:
        cuda.atomic.add(bins, key % bins.size, value)


@cuda.jit(device=True)
def steps_down(n):
    return 0 if n <= 0 else 1 + steps_down(n - 3)


@cuda.jit
def added(keys, bins, out):
    i = cuda.grid(1)
    if i < keys.size:
        add_up(bins, keys[i], i - 50)
        out[i] = steps_down(keys[i]) + clamp(keys[i], 3, 20)


def test_functions_that_change_arrays_and_call_themselves():
    keys = np.random.default_rng(3).integers(0, 40, 500).astype(np.int32)
    bins, out = np.zeros(17, np.int32), np.zeros(500, np.int32)
    added[4, 128](keys, bins, out)
    values = np.maximum(np.arange(500) - 50, 0)
    np.testing.assert_array_equal(bins, np.bincount(keys % 17, values, 17))
    np.testing.assert_array_equal(out, -(-np.maximum(keys, 0) // 3) + np.clip(keys, 3, 20))


@cuda.jit(device=True)
def shifted(tile, by):
    tx = cuda.threadIdx.x
    value = tile[(tx + by) % tile.size]
    cuda.syncthreads()
    tile[tx] = value
    cuda.syncthreads()
    return value - tx


@cuda.jit
def rotated(out):
    tile = cuda.shared.array(64, np.int32)
    tx = cuda.threadIdx.x
    tile[tx] = tx
    cuda.syncthreads()
    first = shifted(tile, 5)
    second = shifted(tile, 7)
    out[tx] = tile[tx] * 10000 + clamp(first, 0, 9) * 100 + clamp(second, -5, 50) + 5


def test_functions_with_barriers_beside_small_ones():
    out, tx = np.zeros(64, np.int32), np.arange(64)
    rotated[1, 64](out)
    first, second = (tx + 5) % 64 - tx, (tx + 12) % 64 - tx
    expected = (tx + 12) % 64 * 10000 + np.clip(first, 0, 9) * 100 + np.clip(second, -5, 50) + 5
    np.testing.assert_array_equal(out, expected)
