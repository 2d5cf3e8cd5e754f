"""Kernels whose threads behave differently at a boundary: clamps, tests of neighbors, and periodic indices.

The CPU runs the steady state between the boundaries of a row as a copy without these conditions. So the tests use rows
of all lengths: shorter than the first boundary, ending on it, between the two, and with integers that wrap.
"""

import numpy as np
import pytest
from harness import run
from weft import cuda

SHAPES = [(1, 1), (1, 2), (2, 1), (3, 3), (5, 33), (7, 70)]
BLOCKS = [(16, 4), (64, 1), (1, 8), (5, 3)]
LARGEST = 2**63 - 1


def image(shape, dtype=np.int32):
    return (np.arange(shape[0] * shape[1]).reshape(shape) * 7 % 251).astype(dtype)


def launch_over(kernel, shape, block, *args):
    grid = tuple(-(-extent // size) + 1 for extent, size in zip(shape[::-1], block, strict=True))
    run(kernel, grid, block, *args)


@cuda.jit
def clamped(a, out, r):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        s = 0
        for dy in range(-1, 2):
            for dx in range(-r, r + 1):
                s = s * 3 + a[min(max(y + dy, 0), h - 1), max(min(x + dx, w - 1), 0)]
        out[y, x] = s


@cuda.jit
def clamped_by_steps(a, out, r):
    x, y = cuda.grid(2)
    if x >= a.shape[1] or y >= a.shape[0]:
        return
    left = x - r
    if left < 0:
        left = 0
    right = x + r
    if right > a.shape[1] - 1:
        right = a.shape[1] - 1
    up = y - 1 if y > 0 else y
    out[y, x] = a[y, left] * 5 + a[y, right] * 3 - a[up, x]


@cuda.jit
def mirrored(a, out, r):
    x, y = cuda.grid(2)
    h, w = a.shape
    if y < h and x < w:
        out[y, x] = a[y, min(w - 1, max(0, w - 1 - x + r))] - a[y, max(0, w - 1 - x)]


@cuda.jit
def neighbors_or_less(a, out, r):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        s = 0
        for dy in range(-r, r + 1):
            for dx in range(-1, 2):
                yy = y + dy
                xx = x + dx
                if 0 <= yy < h and 0 <= xx < w:
                    s += a[yy, xx] * (3 * dy + dx + 11)
                else:
                    s -= 1
        out[y, x] = s


@cuda.jit
def neighbors_by_jumps(a, out, r):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        s = 0
        for dx in range(-r, r + 1):
            if x + dx < 0:
                continue
            if x + dx >= w:
                break
            s += a[y, x + dx] * (dx + 4)
        if x == 0 or x == w - 1 or y == 0:
            s = -s
        out[y, x] = s


@cuda.jit(device=True)
def reflected(i, n):
    if i < 0:
        i = -i - 1
    if i >= n:
        i = 2 * n - 1 - i
    return min(max(i, 0), n - 1)


@cuda.jit
def called(a, out, r):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        out[y, x] = a[reflected(y - r, h), reflected(x + r, w)] + a[y, max(x - r, 0)]


@pytest.mark.parametrize("kernel", [clamped, clamped_by_steps, mirrored, neighbors_or_less, neighbors_by_jumps, called])
@pytest.mark.parametrize("block", BLOCKS)
def test_images(kernel, block):
    for shape in SHAPES:
        for r in (0, 1, 2):
            launch_over(kernel, shape, block, image(shape), np.zeros(shape, np.int64), r)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_types_of_elements(dtype):
    for shape in SHAPES:
        launch_over(clamped, shape, (32, 2), image(shape, dtype), np.zeros(shape, np.float64), 1)


@cuda.jit
def run_around(a, out, k):
    i = cuda.grid(1)
    n = a.size
    if i < n:
        out[i] = a[(i + k) % n] * 3 + a[(i - k) % n] - (i + k) // n


@cuda.jit
def far(a, out, k):
    i = cuda.grid(1)
    n = a.size
    if i < n:
        out[i] = a[min(max(i + k, 0), n - 1)] + (10 if i - k >= 0 else 20) + (100 if n > i + k else 200)


@pytest.mark.parametrize("kernel", [run_around, far])
@pytest.mark.parametrize("size", [1, 2, 31, 100])
def test_offsets_of_any_size(kernel, size):
    near = [0, 1, -1, 2, -2, size - 1, -size, size + 1]
    large = [2**58, 2**59, -(2**59), 2**60 + 3, LARGEST, LARGEST - 5, LARGEST - size, -LARGEST, -LARGEST - 1]
    for k in near + large:
        run(kernel, 4, 32, np.arange(size, dtype=np.int64) * 5, np.zeros(size, np.int64), np.int64(k))


@cuda.jit
def around_from_above(a, out, k):
    i = cuda.grid(1)
    n = a.size
    if i < n:
        before = (i + n - 1) % n
        out[i] = a[before] * 7 + a[(i - 1 + n) % n] * 5 + a[(n + i + 1) % n] * 3 + a[(i - n) % n]
        out[i] += a[(i + n + n - k) % n] * 11 - a[(k + n + i) % n] + before * 1000


@cuda.jit
def around_a_length(length, out, k):
    i = cuda.grid(1)
    if i < out.size and i < length:
        out[i] = (i + length - k) % length - (length + i) % length * 3 + (i - length + k) % length * 7


@cuda.jit
def around_both_axes(a, out, k):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        west = (x - 1 + w) % w
        north = (y - 1 + h) % h
        out[y, x] = a[y, west] + a[y, (x + k) % w] * 3 - a[north, x] * 5 + a[(y + h + k) % h, (x + w - k) % w] * 7


@pytest.mark.parametrize("size", [1, 2, 3, 31, 100])
def test_lengths_that_are_added_first(size):
    a = np.arange(size, dtype=np.int64) * 5
    for k in (0, 1, 2, size - 1, size, -1, -size, 2**59, LARGEST, LARGEST - size, -LARGEST - 1):
        run(around_from_above, 4, 32, a, np.zeros(size, np.int64), np.int64(k))


@pytest.mark.parametrize("length", [1, 5, 40, 2**58, 2**59, 2**62 - 20, 2**62, LARGEST - 20, LARGEST])
def test_lengths_to_which_indices_cannot_be_added(length):
    for k in (0, 1, 3, 2**59, -LARGEST):
        run(around_a_length, 2, 32, np.int64(length), np.zeros(40, np.int64), np.int64(k))


@pytest.mark.parametrize("block", BLOCKS)
def test_images_that_run_around(block):
    for shape in SHAPES:
        for k in (0, 1, 2):
            launch_over(around_both_axes, shape, block, image(shape), np.zeros(shape, np.int64), k)


@cuda.jit
def negative(a, out, k):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i - k] + a[i - 2 * k]


def test_negative_indices_count_from_the_end():
    for k in (0, 1, 3, 20):
        run(negative, 3, 16, np.arange(40, dtype=np.int64), np.zeros(40, np.int64), k)


@cuda.jit
def written(a, k):
    i = cuda.grid(1)
    n = a.size
    if i < n:
        if 0 <= i + k < n:
            a[i + k] = i
        elif i + k < 0:
            a[n + i + k] = -i
        else:
            a[i + k - n] = 1000 + i


def test_writes_beside_a_border():
    for k in (0, 1, -1, 5, -17, 39):
        run(written, 3, 32, np.zeros(40, np.int64), k)


@cuda.jit
def stencil_in_turns(a, out, turns):
    tile = cuda.shared.array(64, np.int64)
    i = cuda.threadIdx.x
    n = cuda.blockDim.x
    tile[i] = a[cuda.grid(1)]
    cuda.syncthreads()
    for _ in range(turns):
        left = tile[max(i - 1, 0)]
        right = tile[min(i + 1, n - 1)]
        kept = tile[i] if i > 0 and i < n - 1 else 0
        cuda.syncthreads()
        tile[i] = left + right - kept
        cuda.syncthreads()
    out[cuda.grid(1)] = tile[i]


@pytest.mark.parametrize("block", [1, 2, 3, 64])
def test_between_barriers(block):
    values = np.arange(4 * block, dtype=np.int64) * 3 % 17
    run(stencil_in_turns, 4, block, values, np.zeros(4 * block, np.int64), 3)


@cuda.jit
def steps_of_three(a, out):
    i = cuda.grid(1)
    if i < out.size:
        s = 0
        for d in range(-6, 7, 3):
            if i + d >= 0 and i + d < a.size:
                s += a[i + d]
        for d in range(4, -5, -2):
            s = s * 2 + a[min(max(i + d, 0), a.size - 1)]
        out[i] = s


def test_other_steps():
    for size in (1, 5, 33, 64):
        run(steps_of_three, 3, 32, np.arange(size, dtype=np.int64), np.zeros(size, np.int64))


@cuda.jit
def from_far_below(a, out, first):
    i = cuda.grid(1)
    n = a.size
    if i < n:
        s = 0
        for d in range(first, 3):
            if i - 5 + d < n:
                s += 1
            if d - first > 3:
                break
        out[i] = s


def test_counters_that_begin_at_the_smallest_integer():
    for first in (-LARGEST - 1, -LARGEST + 2, -4, 0):
        run(from_far_below, 2, 16, np.zeros(20, np.int64), np.zeros(20, np.int64), np.int64(first))
