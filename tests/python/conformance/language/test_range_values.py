"""Ranges as values: slices, comparison, methods, and the functions of whole sequences; methods of tuples."""

import itertools

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda

RANGES = [range(7), range(2, 40, 3), range(10, -2, -3), range(0), range(5, 5), range(5, 6), range(-3, 3)]
BOUNDS = [(None, None, None), (None, None, -1), (1, 5, 2), (5, 1, -2), (-3, None, None), (None, -100, -1), (9, 100, 7)]


@cuda.jit
def sliced(start, stop, step, lower, upper, by, out):
    r = range(start, stop, step)
    s = r[lower:upper:by]
    out[0] = len(s)
    out[1] = s.start
    out[2] = s.stop
    out[3] = s.step
    n = 4
    for x in s:
        out[n] = x
        n += 1
    for x in reversed(s):
        out[n] = x
        n += 1


@pytest.mark.parametrize(("r", "bounds"), list(itertools.product(RANGES, BOUNDS)))
def test_slices(r, bounds):
    like_python(sliced, r.start, r.stop, r.step, *bounds, np.zeros(40, np.int64))


@cuda.jit
def constant_slices(out):
    n = 0
    for r in (range(9)[::-1], range(9)[2:7:2], range(3, 30, 4)[-2:], range(9)[5:1:-3], range(9)[3:3]):
        out[n] = len(r)
        out[n + 1] = r.start
        out[n + 2] = r.stop
        out[n + 3] = r.step
        n += 4
    t = tuple(range(9)[1::4])
    out[n] = len(t) * 10 + t[1]


def test_slices_of_constants():
    like_python(constant_slices, np.zeros(21, np.int64))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64, np.int64])
def test_slices_of_ranges_of_every_type(dtype):
    @cuda.jit
    def kernel(n, out):
        at = 0
        for i in range(n)[::-2]:
            out[at] = i
            at += 1
        for i in range(n)[1:4]:
            out[at] = i
            at += 1

    like_python(kernel, dtype(6), np.zeros(6, np.int64))


@cuda.jit
def ends(start, stop, step, lower, upper, by, out):
    n = 0
    for x in range(start, stop, step)[lower:upper:by]:
        out[n] = x
        n += 1
    out[6] = n


TOP, BOTTOM = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    "args",
    [
        (TOP - 3, TOP, 1, None, None, None),
        (TOP - 3, TOP, 1, None, None, -1),
        (0, TOP, 2**62, None, None, None),
        (0, TOP, 2**62, None, None, -1),
        (TOP, BOTTOM, -(2**62), None, None, None),
        (TOP - 1, BOTTOM, -(2**62), None, None, -1),
        (BOTTOM, TOP, 2**61, 1, 6, None),
        (0, 5, 2, None, None, 2**62),
        (0, 5, 2, None, None, -(2**63)),
    ],
)
def test_slices_at_the_ends_of_int64(args):
    like_python(ends, *args, np.zeros(7, np.int64))


def test_the_length_of_a_range_that_no_int64_is():
    @cuda.jit
    def kernel(start, stop, out):
        out[0] = len(range(start, stop))
        out[1] = len(range(stop, start))
        out[2] = range(start, stop)[-1]
        out[3] = len(range(-(2**63), 2**63 - 1))

    out = np.zeros(4, np.int64)
    kernel[1, 1](BOTTOM, TOP, out)
    # Python raises an error; here the length is the largest int64.
    assert out.tolist() == [TOP, 0, TOP - 1, TOP]


@cuda.jit
def compared(a, b, c, d, e, f, out):
    r, s = range(a, b, c), range(d, e, f)
    out[0] = r == s
    out[1] = r != s
    out[2] = r == r
    out[3] = r == range(a, b, c)[:]
    out[4] = r == a
    out[5] = r != (a, b)


@pytest.mark.parametrize(("r", "s"), [*itertools.product(RANGES, RANGES), (range(0, 5, 3), range(0, 4, 3))])
def test_equality(r, s):
    like_python(compared, r.start, r.stop, r.step, s.start, s.stop, s.step, np.zeros(6, np.bool_))


@cuda.jit
def whole(start, stop, step, a, out):
    r = range(start, stop, step)
    out[0] = sum(r)
    out[1] = sum(r, 10)
    out[2] = any(r)
    out[3] = all(r)
    out[4] = min(r)
    out[5] = max(r)
    out[6] = r.count(start) + 10 * r.count(start + 1)
    out[7] = r.index(start)
    out[8] = r.index(r[-1])
    out[9] = sum(reversed(r))
    out[10] = max(enumerate(a))[1] * 10 + min(zip(r, a))[0]  # noqa: B905
    out[11] = sum(a.flat)


@pytest.mark.parametrize("r", [r for r in RANGES if r])
def test_functions_of_sequences(r):
    like_python(whole, r.start, r.stop, r.step, np.array([3, 1, 2]), np.zeros(12, np.int64))


def test_what_has_no_item_is_zero():
    @cuda.jit
    def kernel(n, out):
        out[0] = min(range(n)) + max(range(n)) + sum(range(n))
        out[1] = range(n).index(5)
        out[2] = (1, 2).index(n)

    out = np.full(3, 9)
    kernel[1, 1](0, out)
    assert out.tolist() == [0, -1, -1]


@cuda.jit
def of_tuples(t, x, out):
    out[0] = t.index(x)
    out[1] = t.count(x)
    out[2] = (4, 5, 4, 6).index(4, 1)
    out[3] = (4, 5, 4, 6).index(6, -3, 9)
    out[4] = (1, 2.5, True, 1).count(1)
    out[5] = ((1, x), (2, x)).index((2, x))
    out[6] = t == x
    out[7] = t != x
    out[8] = x == t
    out[9] = 1 in ((1, 2), x)
    out[10] = (None, 1, "a").index(1)


@pytest.mark.parametrize(("t", "x"), [((1, 2, 3, 2), 2), ((1, 2.5, 3, True), 2.5), ((1, 2.5, 3, True), True)])
def test_methods_of_tuples(t, x):
    like_python(of_tuples, t, x, np.zeros(11))


@cuda.jit
def tuples_of(a, out):
    t = tuple(range(3, 9, 2))
    u = tuple(enumerate(t))
    v = tuple(reversed(t))
    out[0] = t[2] * 100 + u[1][1] * 10 + v[0]
    out[1] = len(tuple(zip(t, v))) + len(tuple())  # noqa: B905, C408


def test_tuples_of_what_loops_go_over():
    like_python(tuples_of, np.zeros(2), np.zeros(2))


def test_a_tuple_of_what_has_no_known_length():
    @cuda.jit
    def kernel(a, out):
        out[0] = len(tuple(a))

    with pytest.raises(weft.CompileError, match="not a compile-time constant"):
        kernel[1, 1](np.zeros(3), np.zeros(1))
