"""Loops in threads: iterations that some threads skip, windows that start below zero or run backwards; compared with
NumPy."""

import numpy as np
import pytest
from weft import cuda

SIZES = [1, 15, 16, 17, 64, 65, 300, 1100]
BLOCKS = [1, 5, 37, 64, 256]


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def each(function, n):
    """The results of `function` for each thread index."""
    return np.array([function(i) for i in range(n)])


@cuda.jit
def skipped(a, lowest, out, seen):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        count = 0
        for k in range(a.shape[0]):
            value = a[k, i]
            if value < lowest[i]:
                continue
            if value == 9:
                if k > 3:
                    break
                count += 100
            elif value == 8:
                count += 10
                continue
            total += value
            seen[k, i] = value
        out[i] = total + 1000 * count


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
def test_some_are_skipped(n, block):
    a, lowest = values(7, 25, n, dtype=np.int32), values(8, n, dtype=np.int32)
    out, seen = np.zeros(n, np.int32), np.full((25, n), 77, np.int32)
    skipped[-(-n // block), block](a, lowest, out, seen)
    expected = np.full((25, n), 77, np.int32)

    def of(i):
        total = count = 0
        for k in range(25):
            value = a[k, i]
            if value < lowest[i]:
                continue
            if value == 9:
                if k > 3:
                    break
                count += 100
            elif value == 8:
                count += 10
                continue
            total += value
            expected[k, i] = value
        return total + 1000 * count

    np.testing.assert_array_equal(out, each(of, n))
    np.testing.assert_array_equal(seen, expected)


@cuda.jit
def skipped_inside(a, lowest, n, out):
    """A `continue` in a divergent branch, in both arms, at the end of the body, and in a nested loop."""
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        for k in range(n):
            value = a[k, i]
            if value > 0:
                if value > lowest[i]:
                    total += 1
                    continue
                total += 10
            else:
                total = total * 2
                if value == -1:
                    continue
                for j in range(k):
                    if a[j, i] == value:
                        continue
                    if j > 5:
                        break
                    total += a[j, i]
                if value < -5:
                    total -= 3
                    continue
            total ^= value
            if total % 7 == 0:
                total += 5
                if value % 2 == 0:
                    continue
                total -= 1
        out[i] = total


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("turns", [0, 1, 20])
def test_some_are_skipped_in_branches(n, turns):
    a, lowest = values(12, 20, n, dtype=np.int64), values(13, n, dtype=np.int64)
    out = np.zeros(n, np.int64)
    skipped_inside[-(-n // 64), 64](a, lowest, np.int32(turns), out)

    def of(i):
        total = 0
        for k in range(turns):
            value = int(a[k, i])
            if value > 0:
                if value > lowest[i]:
                    total += 1
                    continue
                total += 10
            else:
                total = total * 2
                if value == -1:
                    continue
                for j in range(k):
                    if a[j, i] == value:
                        continue
                    if j > 5:
                        break
                    total += int(a[j, i])
                if value < -5:
                    total -= 3
                    continue
            total ^= value
            if total % 7 == 0:
                total += 5
                if value % 2 == 0:
                    continue
                total -= 1
        return total

    np.testing.assert_array_equal(out, each(of, n))


@cuda.jit
def window(y, r, wraps, out):
    i = cuda.grid(1)
    if i < out.size:
        total = y.dtype.type(0)
        if (wraps or i >= r) and i + r < y.size:
            for j in range(-r, r + 1):
                total = total * 3 + y[i + j]
        out[i] = total


@cuda.jit
def inside(y, r, out):
    i = cuda.grid(1)
    if i >= r and i < y.size - r:
        total = y.dtype.type(0)
        for j in range(-r, r + 1):
            total = total * 3 + y[i + j]
        out[i] = total


@cuda.jit
def below_zero(y, r, out):
    """All but the last threads: the first ones read from the end of the array, by negative indices."""
    i = cuda.grid(1)
    if i + r < y.size:
        total = y.dtype.type(0)
        for j in range(-r, r + 1):
            total = total * 3 + y[i + j]
        out[i] = total


@cuda.jit
def backwards(y, r, out):
    i = cuda.grid(1)
    if i < out.size:
        total = y.dtype.type(0)
        for j in range(r):
            total = total * 3 + y[i - j]
        out[i] = total


@cuda.jit
def backwards_inside(y, r, out):
    i = cuda.grid(1)
    if i >= r and i < out.size - 1:
        total = y.dtype.type(0)
        for j in range(r):
            total = total * 3 + y[i + 1 - j]
        out[i] = total


def summed(y, offsets):
    total = np.zeros(y.size, y.dtype)
    with np.errstate(over="ignore"):
        for offset in offsets:
            total = total * 3 + y[(np.arange(y.size) + offset) % y.size]
    return total


@pytest.mark.parametrize("number", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("r", [0, 1, 16, 40])
def test_windows_from_below_zero(number, dtype, n, r):
    y, at, grid = values(10, n, dtype=dtype), np.arange(n), -(-n // 64)
    around, back = summed(y, range(-r, r + 1)), summed(y, range(0, -r, -1))

    def check(kernel, *more, expected, here, others):
        out = np.full(n, 77, dtype)
        kernel[grid, 64](y, number(r), *more, out)
        np.testing.assert_array_equal(out, np.where(here, expected, dtype(others)))

    check(window, False, expected=around, here=(at >= r) & (at + r < n), others=0)
    check(inside, expected=around, here=(at >= r) & (at + r < n), others=77)
    check(backwards_inside, expected=summed(y, range(1, 1 - r, -1)), here=(at >= r) & (at < n - 1), others=77)
    if r <= n:
        check(window, True, expected=around, here=at + r < n, others=0)
        check(below_zero, expected=around, here=at + r < n, others=77)
        check(backwards, expected=back, here=True, others=77)


@cuda.jit
def clamped(a, out):
    x, z = cuda.grid(2)
    depth, width = a.shape
    if x < width and z < out.shape[0]:
        west = max(x - 1, 0)
        east = x + 1 if x < width - 1 else x
        total = a.dtype.type(0)
        for k in range(z, depth):
            total = total * 3 + a[k, west] - a[k, east] + a[k, min(x + k, width - 1)]
        out[z, x] = total


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", [(16, 16), (64, 1), (5, 2)])
def test_clamped_neighbors(dtype, n, block):
    a, out = values(11, 9, n, dtype=dtype), np.zeros((3, n), dtype)
    clamped[(-(-n // block[0]), -(-3 // block[1])), block](a, out)
    at = np.arange(n)
    for z in range(3):
        total = np.zeros(n, dtype)
        for k in range(z, 9):
            total = total * 3 + a[k, np.maximum(at - 1, 0)] - a[k, np.minimum(at + 1, n - 1)]
            total += a[k, np.minimum(at + k, n - 1)]
        np.testing.assert_array_equal(out[z], total)
