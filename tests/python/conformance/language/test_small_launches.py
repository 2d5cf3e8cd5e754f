"""Integers at the limits of 32 bits: a GPU has a variant of a kernel for small integers, and one for others."""

import numpy as np
import pytest
from harness import run
from weft import cuda

ENDS = [0, 1, -1, 7, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**32 + 5, 2**62]


@cuda.jit
def arithmetic(a, b, out):
    i = cuda.grid(1)
    out[i, 0] = a + b
    out[i, 1] = a - b + i
    out[i, 2] = a * b
    out[i, 3] = min(a, b) + max(a - 1, b + 1)
    out[i, 4] = a // (b + i)
    out[i, 5] = a % (b + i)
    out[i, 6] = (a << 3) ^ (b >> 2) | (a & b)
    out[i, 7] = -a + abs(b)
    total = 0
    for k in range(5):
        total += a
        if k > 2 or a > b:
            total -= b * k
    out[i, 8] = total
    out[i, 9] = a if a < b + i else b


@pytest.mark.parametrize("a", ENDS)
def test_arithmetic(a):
    # Python integers are unbounded: the reference wraps to int64.
    for b in ENDS:
        run(arithmetic, 2, 2, np.int64(a), np.int64(b), np.zeros((4, 10), np.int64))


@cuda.jit
def sums(values, scale, out):
    i = cuda.grid(1)
    total = 0
    low = 0
    for k in range(values.shape[0]):
        for j in range(-2, 3):
            total += values[k] * scale + j
            low = min(low, values[k] - j)
    out[i] = total + low


@pytest.mark.parametrize("scale", [1, 2**20, 2**31 - 1, 2**40])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_sums_of_bounded_turns(dtype, scale):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, 3, info.max, info.max, info.min], dtype)
    run(sums, 1, 2, values, np.int64(scale), np.zeros(2, np.int64))


@cuda.jit
def clamped(image, radius, out):
    x, y = cuda.grid(2)
    h, w = image.shape
    if x < w and y < h:
        total = 0
        for dy in range(-radius, radius + 1):
            for dx in range(-1, 2):
                total += image[min(max(y + dy, 0), h - 1), min(max(x + dx, 0), w - 1)]
        out[y, x] = total
        # Negative: from the end.
        out[y, x] += image[y - h, x - 1]


@pytest.mark.parametrize("radius", [0, 2])
def test_clamped_and_negative_indices(radius):
    image = np.random.default_rng(1).integers(0, 256, (7, 9), dtype=np.uint8)
    run(clamped, (2, 2), (8, 4), image, np.int64(radius), np.zeros((7, 9), np.int64))


@cuda.jit
def unsigned(a, out):
    i = cuda.grid(1)
    out[i, 0] = a - np.uint64(i)
    out[i, 1] = a * a
    out[i, 2] = a >> np.uint64(31)


@pytest.mark.parametrize("a", [0, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1])
def test_unsigned(a):
    run(unsigned, 1, 3, np.uint64(a), np.zeros((3, 3), np.uint64))


@cuda.jit
def counted(stop, step, out):
    i = cuda.grid(1)
    turns = 0
    k = stop - 20
    while k < stop:
        turns += 1
        k += step
    out[i, 0] = turns
    out[i, 1] = k


@pytest.mark.parametrize("stop", [5, 2**31 - 1, 2**31 + 3, 2**40])
@pytest.mark.parametrize("step", [1, 3, 7])
def test_counters_that_end_beyond_32_bits(stop, step):
    run(counted, 1, 2, np.int64(stop), np.int64(step), np.zeros((2, 2), np.int64))


@cuda.jit
def of_empty(x, y, out):
    i = cuda.grid(1)
    n = x.shape[0]
    # The last element of `y` if `x` is empty.
    out[i] = y[min(i, n - 1)]
    if n > 0:
        out[i] += i % n + i // n + x[min(max(i - 1, 0), n - 1)]
    for k in range(min(n, i), n, 2):
        out[i] += y[k - n]


@pytest.mark.parametrize("n", [0, 1, 3, 8])
def test_empty_arrays(n):
    run(of_empty, 2, 4, np.arange(n) + 3, np.arange(8) * 5, np.zeros(8, np.int64))


def test_an_empty_array_after_another():
    for n in (5, 0, 4, 0):
        run(of_empty, 1, 8, np.arange(n), np.arange(8) + 1, np.zeros(8, np.int64))


@cuda.jit
def by_flags(x, out):
    i = cuda.grid(1)
    j = i - 3
    if j > 0 and x[j - 1] > 0:
        out[i] += x[j - 1]
        j -= 4
        out[i] += x[j]
    if j < 0 or x[j] < 2:
        j -= 1
        out[i] += 10 * x[j]
        known = j > -4
        j -= 2
        if known:
            out[i] += 100 * x[j]
    ok = j >= 0 and x[j] != 1
    if not ok:
        out[i] += 1000 * x[j]
    else:
        out[i] -= x[j]
    for k in range(j, -6, -(cuda.blockDim.x // 4)):
        out[i] += 10000 * x[k]
    k = i - 1
    if k > 0:
        k -= 5
        changed = x[k] > 0
    else:
        changed = False
    again = changed
    if again:
        out[i] += 100000 * x[k]


def test_values_that_flags_imply():
    run(by_flags, 1, 12, np.array([1, 0, 2, 5, 1, 3, 0, 1, 4, 1, 2, 6]), np.zeros(12, np.int64))


@cuda.jit(device=True)
def root(labels, i):
    while labels[i] != i:
        i = labels[i]
    return i


@cuda.jit
def roots(parent, first, out):
    labels = cuda.shared.array(8, np.int32)
    others = cuda.shared.array(8, np.int32)
    i = cuda.threadIdx.x
    labels[i] = max(i - 1, 0)
    others[i] = i - 8 if i < 4 else -4
    cuda.syncthreads()
    out[i, 0] = root(labels, i)
    # From the end: -8 is 0, where -8 is.
    out[i, 1] = root(others, i - 8) if i < 3 else others[others[i]]
    at = first * first - first * first + i
    while parent[0, at] != at:
        at = parent[0, at]
    out[i, 2] = at


@pytest.mark.parametrize("first", [3, 2**20, 2**40])
def test_roots(first):
    parent = np.array([[0, 0, 1, 2, -8, 4, 6, 6]], np.int32)
    parent[0, 4] = 3
    run(roots, 1, 8, parent, np.int64(first), np.zeros((8, 3), np.int64))
