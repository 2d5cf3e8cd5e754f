"""Divisions that a GPU computes without a division instruction, or in 32 bits, and floats after branches, at the limits
of their ranges.

A division by zero has quotient and remainder 0, and so has the minimum divided by -1.
"""

import itertools
import math

import numpy as np
import pytest
from harness import assert_exact, launch
from weft import cuda

LEAST, MOST = -(2**63), 2**63 - 1
WIDE = sorted(
    {sign * (2**k + d) for k in (0, 2, 15, 31, 32, 33, 62) for d in (-1, 0, 1) for sign in (1, -1)} | {LEAST, MOST}
)
NARROW = [value for value in WIDE if -(2**31) <= value < 2**31]


def wrapped(value):
    return (value + 2**63) % 2**64 - 2**63


def divided(a, b):
    """Quotient and remainder in 64 bits."""
    return (0, 0) if b == 0 or (a == LEAST and b == -1) else (wrapped(a // b), a % b)


def run_pairs(kernel, pairs, dtype, n_results, other=None):
    """The kernel's results: a row of int64 for each pair."""
    a, b = (
        np.array(column, kind) for column, kind in zip(zip(*pairs, strict=True), (dtype, other or dtype), strict=True)
    )
    got, *_ = launch(kernel, -(-len(pairs) // 128), 128, np.zeros((len(pairs), n_results), np.int64), a, b)
    return got


@cuda.jit
def quotients(r, a, b):
    i = cuda.grid(1)
    if i < len(a):
        r[i, 0] = a[i] // b[i]
        r[i, 1] = a[i] % b[i]


@pytest.mark.parametrize(
    ("dtype", "values"), [(np.int64, WIDE), (np.int32, NARROW), (np.uint32, [0, 1, 2, 7, 2**31, 2**32 - 1])]
)
def test_quotients_at_the_ends_of_a_type(dtype, values):
    pairs = list(itertools.product(values, values))
    expected = [divided(int(a), int(b)) for a, b in pairs]
    assert_exact(run_pairs(quotients, pairs, dtype, 2), np.array(expected, np.int64))


def test_quotients_of_operands_of_different_types():
    pairs = list(itertools.product(WIDE, NARROW))
    expected = [divided(a, b) for a, b in pairs]
    assert_exact(run_pairs(quotients, pairs, np.int64, 2, np.int32), np.array(expected, np.int64))


@cuda.jit
def neighbors(r, a, b):
    i = cuda.grid(1)
    if i < len(a):
        x = a[i]
        w = b[i]
        if x >= 0 and x < w:
            r[i, 0] = (x + 1) % w
            r[i, 1] = (x - 1) % w
            r[i, 2] = x % w
            r[i, 3] = (x + 1) // w
            r[i, 4] = (x - 1) // w
            r[i, 5] = x // w
            r[i, 6] = (x + 2) % w
            r[i, 7] = (x - 2) % w


def test_neighbors_on_a_ring():
    pairs = list(itertools.product(WIDE, WIDE))
    expected = np.zeros((len(pairs), 8), np.int64)
    for row, (x, w) in zip(expected, pairs, strict=True):
        if 0 <= x < w:
            row[:3] = [divided(wrapped(x + by), w)[1] for by in (1, -1, 0)]
            row[3:6] = [divided(wrapped(x + by), w)[0] for by in (1, -1, 0)]
            row[6:] = [divided(wrapped(x + by), w)[1] for by in (2, -2)]
    assert_exact(run_pairs(neighbors, pairs, np.int64, 8), expected)


@cuda.jit
def rings(r, a, b):
    i = cuda.grid(1)
    if i < len(a):
        w = np.int64(b[i])
        head = 0
        tail = 0
        for d in range(a[i]):
            r[i, 0] = r[i, 0] * 31 + head
            r[i, 1] = r[i, 1] * 31 + tail
            head = (head + 1) % w
            tail = (tail - 1) % w
            r[i, 2] = r[i, 2] * 17 + d % 3
            r[i, 3] = r[i, 3] * 17 + d % w
            r[i, 4] = r[i, 4] * 17 + (d + 4) % w
            r[i, 5] = r[i, 5] * 17 + (d - 4) % 5
            if d > 2:
                r[i, 6] += d % w
        for d in range(2, a[i], 3):
            r[i, 7] = r[i, 7] * 13 + d % w + d // w


@pytest.mark.parametrize("width", [np.uint32, np.int32, np.int64])
def test_heads_of_rings_and_remainders_of_counters(width):
    widths = [0, 1, 2, 3, 4, 5, 7, 2**31 - 1]
    widths += {np.uint32: [2**31, 2**32 - 1], np.int32: [-1, -3], np.int64: [-1, -3, 2**32 + 1, MOST, LEAST]}[width]
    pairs = list(itertools.product([-1, 0, 1, 2, 3, 4, 5, 9, 21], widths))
    expected = []
    for n, w in pairs:
        row = [0] * 8
        head = tail = 0
        for d in range(n):
            values = [head, tail, d % 3, divided(d, w)[1], divided(d + 4, w)[1], (d - 4) % 5]
            factors = [31, 31, 17, 17, 17, 17]
            row[:6] = [wrapped(old * f + value) for old, f, value in zip(row, factors, values, strict=False)]
            head, tail = divided(head + 1, w)[1], divided(tail - 1, w)[1]
            row[6] = wrapped(row[6] + divided(d, w)[1]) if d > 2 else 0
        for d in range(2, n, 3):
            row[7] = wrapped(row[7] * 13 + sum(divided(d, w)))
        expected.append(row)
    assert_exact(run_pairs(rings, pairs, np.int64, 8, width), np.array(expected, np.int64))


@cuda.jit
def shared_width(r, a, w):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        h = a.shape[0]
        r[y, x] = a[(y - 1) % h, x] + 2 * a[(y + 1) % h, x] + 3 * a[y, (x - 1) % w] + 5 * a[y, (x + 1) % w]


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (9, 13)])
def test_a_torus(shape):
    a = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    got, *_ = launch(shared_width, (2, 2), (8, 8), np.zeros_like(a), a, shape[1])
    expected = np.roll(a, 1, 0) + 2 * np.roll(a, -1, 0) + 3 * np.roll(a, 1, 1) + 5 * np.roll(a, -1, 1)
    assert_exact(got, expected)


@cuda.jit
def guarded(r, x, limit):
    i = cuda.grid(1)
    if i < len(x):
        v = x[i]
        root = v
        if v > 0:
            root = limit - math.sqrt(v)
        r[i, 0] = root
        r[i, 1] = math.sqrt(v) if v > limit else v
        r[i, 2] = limit / v if v > 0 and limit / v < limit else -limit
        r[i, 3] = (1 / v if v < limit else v / limit) if v != 0 else limit
        hit = v < 0 or math.sqrt(v) > limit
        r[i, 4] = 1 if hit else 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_square_roots_and_quotients_behind_branches(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    edges = [0.0, -0.0, tiny, -tiny, 1.0, -1.0, 2.0, 3.0, 9.5, np.finfo(dtype).max, np.inf, -np.inf, np.nan]
    x, limit = np.array(edges, dtype), dtype(2)
    got, *_ = launch(guarded, 1, 32, np.zeros((len(x), 5), dtype), x, limit)
    expected = np.zeros_like(got)
    with np.errstate(all="ignore"):
        for row, v in zip(expected, x, strict=True):
            quotient = limit / v
            row[0] = limit - np.sqrt(v) if v > 0 else v
            row[1] = np.sqrt(v) if v > limit else v
            row[2] = quotient if v > 0 and quotient < limit else -limit
            row[3] = limit if v == 0 else (dtype(1) / v if v < limit else v / limit)
            row[4] = v < 0 or np.sqrt(v) > limit
    assert_exact(got, expected)
