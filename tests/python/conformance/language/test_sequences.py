"""Tuples: starred targets and items, comprehensions, order, repetition, slices with steps."""

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda


@cuda.jit
def starred_targets(t, a, out):
    first, *middle, last = t
    out[0] = first * 100 + last
    out[1] = len(middle)
    for m in middle:
        out[1] += m
    *front, end = t
    out[2] = end + len(front)
    head, *tail = t
    out[3] = head + len(tail) * 10
    (x, *y), z = (1, 2, 3), 4
    out[4] = x + y[0] * 10 + y[1] * 100 + z * 1000
    p, *nothing = (5,)
    out[5] = p + len(nothing)
    for i, *rest in ((1, 2, 3), (4, 5, 6)):
        out[6] += i * rest[0] - rest[1]
    [q, r] = a[0], a[1]
    out[7] = q - r


@pytest.mark.parametrize("t", [(1, 2), (1, 2, 3), (1, 2.5, 3, 4)])
def test_starred_targets(t):
    like_python(starred_targets, t, np.array([7, 3]), np.zeros(8))


@cuda.jit
def starred_items(t, n, out):
    u = (*t, n)
    v = (0, *t, *(n, n + 1), *())
    out[0] = len(u) * 100 + u[-1]
    out[1] = len(v) * 100 + v[-1] + v[1]
    w = *t, *t
    total = 0.0
    for x in w:
        total += x
    out[2] = total
    out[3] = max(*t, n)


@pytest.mark.parametrize("t", [(1,), (1, 2.5), (3, 2, 1)])
def test_starred_items(t):
    like_python(starred_items, t, 9, np.zeros(4))


@cuda.jit
def comprehensions(t, a, n, out):
    squares = tuple(x * x for x in t)
    out[0] = sum(squares)
    even = tuple(i for i in range(10) if i % 2 == 0)
    out[1] = len(even) * 100 + even[-1]
    grid = tuple((i, j) for i in range(3) for j in range(i))
    out[2] = len(grid) * 100 + grid[-1][0] * 10 + grid[-1][1]
    scaled = tuple(x * n for x in (1, 2.5, True))
    out[3] = scaled[0] + scaled[1] + scaled[2]
    out[4] = sum(a[i] for i in range(3))
    out[5] = max(tuple(x + i for i, x in enumerate(t)))
    i = 50
    pairs = tuple(x + y for x, y in zip(t, reversed(t)))  # noqa: B905
    out[6] = pairs[0] + i
    out[7] = any(x > 2 for x in t)
    out[8] = all(x > 2 for x in t)
    nested = tuple(tuple(j * k for k in range(2)) for j in range(3))
    out[9] = nested[2][1] + len(nested)


@pytest.mark.parametrize("t", [(1, 2), (3, 2.5, 4)])
def test_comprehensions_make_tuples(t):
    like_python(comprehensions, t, np.array([1.5, 2, 3]), 3, np.zeros(10))


def test_the_length_of_a_comprehension_must_be_known():
    @cuda.jit
    def length(n, out):
        out[0] = len(tuple(i for i in range(n)))

    @cuda.jit
    def test(n, out):
        out[0] = len(tuple(i for i in range(4) if i < n))

    for kernel in (length, test):
        with pytest.raises(weft.CompileError, match="a compile-time constant"):
            kernel[1, 1](3, np.zeros(1))


@cuda.jit
def compared(a, b, out):
    out[0] = a == b
    out[1] = a != b
    out[2] = a < b
    out[3] = a <= b
    out[4] = a > b
    out[5] = a >= b
    out[6] = a < b < (9, 9)
    out[7] = (a, 1) < (b, 0)
    out[8] = a[:1] < b


PAIRS = [((1, 2), (1, 3)), ((1, 2), (1, 2)), ((2, 0), (1, 5)), ((1, 2.5), (1, 2)), ((1, 2), (1, 2, 0)), ((1,), (0, 9))]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_order_of_tuples(a, b):
    like_python(compared, a, b, np.zeros(9))


def test_nan_in_tuples():
    @cuda.jit
    def kernel(a, b, out):
        out[0] = a < b
        out[1] = a >= b
        out[2] = b < a

    nan = float("nan")
    for a, b in [((nan, 1), (2.0, 1)), ((1.0, nan), (1.0, 3)), ((0.0, nan), (1.0, nan))]:
        like_python(kernel, a, b, np.zeros(3))


@cuda.jit
def repeated(t, n, out):
    u = t * 3
    v = 2 * (n, 1)
    out[0] = len(u) * 100 + u[-1]
    out[1] = v[0] * 1000 + v[1] * 100 + v[2] * 10 + v[3]
    out[2] = len(t * 0) + len(t * -1)
    w = t + v
    out[3] = len(w) + w[-1]
    t += (7,)
    out[4] = t[-1] + len(t)
    t *= 2
    out[5] = len(t)


def test_repetition_and_concatenation():
    like_python(repeated, (1, 2.5, 3), 4, np.zeros(6))


@cuda.jit
def sliced(t, out):
    parts = (t[::2], t[::-1], t[1:-1], t[-2:], t[3:0:-1], t[10:], t[:-10], t[4:1:-2], t[-100:100])
    n = 0
    for part in parts:
        out[n] = len(part)
        n += 1
        for x in part:
            out[n] = x
            n += 1


@pytest.mark.parametrize("t", [(1, 2, 3, 4, 5), (1, 2.5, 3, 4.5, 5, 6)])
def test_slices_of_tuples(t):
    like_python(sliced, t, np.zeros(60))


@cuda.jit
def contained(t, x, out):
    out[0] = x in t
    out[1] = x not in t
    out[2] = (1, x) in ((1, 2), (1, 3))
    out[3] = x in (t[0], (t[1], 5)[1])
    out[4] = 2.5 in t


@pytest.mark.parametrize("x", [2, 3, 8, 2.5])
def test_membership(x):
    like_python(contained, (1, 2, 2.5, 2), x, np.zeros(5))
