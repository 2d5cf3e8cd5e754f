# ruff: noqa: B007, B905, RUF007 (kernels have zip without keywords)
"""Iterables other than plain ranges: enumerate, zip, reversed, ranges as values, tuples of mixed types."""

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda


@cuda.jit
def enumerated(a, t, out):
    n = 0
    for i, x in enumerate(a):
        out[n] = i * 100 + x
        n += 1
    for i, x in enumerate(t, 5):
        if i == 6:
            continue
        out[n] = i * 100 + x
        n += 1
    for i, x in enumerate(range(10, 0, -3), start=-1):
        out[n] = i * 100 + x
        n += 1
    else:
        out[n] = -7
        n += 1
    for i, (j, x) in enumerate(enumerate(a[1:])):
        out[n] = i + j * 10 + x * 100
        n += 1
        if x == 4:
            break
    else:
        out[n] = -8
    out[-1] = n


@pytest.mark.parametrize("a", [np.array([3, 4, 5]), np.array([3, 4, 5, 6])[::-1], np.zeros(0, np.int64)])
def test_enumerate(a):
    like_python(enumerated, a, (7, 8, 9), np.zeros(30, np.int64))


@cuda.jit
def zipped(a, b, t, out):
    n = 0
    for x, y in zip(a, b):
        out[n] = x * 10 + y
        n += 1
    for x, y, z in zip(range(5), t, reversed(b)):
        out[n] = x + y * 10 + z * 100
        n += 1
        if z < 0:
            break
    else:
        out[n] = -1
        n += 1
    for i, (x, y) in enumerate(zip(a, a[1:])):
        if x > y:
            continue
        out[n] = i + y - x
        n += 1
    for (x,) in zip(t):
        out[n] = x
        n += 1
    for pair in zip(a, b):
        out[n] = pair[0] - pair[1] + len(pair)
        n += 1
    out[-1] = n


@pytest.mark.parametrize("length", [0, 1, 4])
def test_zip(length):
    like_python(zipped, np.arange(3) * 2, np.arange(length) + 1, (4, 5, 6), np.zeros(40, np.int64))
    like_python(zipped, np.array([5, 2, 3]), -np.arange(length), (4, 5, 6), np.zeros(40, np.int64))


@cuda.jit
def backwards(a, t, n, out):
    k = 0
    for x in reversed(a):
        out[k] = x
        k += 1
    for x in reversed(t):
        out[k] = x * 2
        k += 1
    for i in reversed(range(n)):
        out[k] = i
        k += 1
    for i in reversed(range(20, n, -3)):
        out[k] = i
        k += 1
    for i in reversed(range(n, 20, 7)):
        for x in reversed(a):
            if x == 2:
                break
            out[k] = i * x
            k += 1
    out[-1] = k


@pytest.mark.parametrize("n", [0, 1, 5, -4])
def test_reversed(n):
    like_python(backwards, np.arange(1, 5), (8, 9), n, np.zeros(60, np.int64))


@cuda.jit
def ranges_as_values(start, stop, step, out):
    r = range(start, stop, step)
    out[0] = len(r)
    out[1] = r.start
    out[2] = r.stop
    out[3] = r.step
    n = 8
    for i in r:
        out[n] = i
        n += 1
    for i in r:
        out[n] = i + 1
        n += 1
    out[4] = start in r
    out[5] = stop in r
    out[6] = (start + step) in r
    out[7] = (start + 1) in r
    if len(r) > 0:
        out[n] = r[0]
        out[n + 1] = r[-1]
        out[n + 2] = r[len(r) // 2]


CASES = [(0, 5, 1), (5, 0, 1), (0, 5, -1), (5, 0, -1), (5, -6, -2), (-7, 8, 3), (3, 3, 1), (0, 10, 10), (0, 11, 10)]
TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", TYPES)
def test_ranges_as_values(dtype):
    for case in CASES:
        if np.dtype(dtype).kind == "u" and min(case) < 0:
            continue
        got = np.zeros(40, np.int64)
        ranges_as_values[1, 1](*(dtype(part) for part in case), got)
        expected = np.zeros(40, np.int64)
        ranges_as_values.py_func(*case, expected)
        assert got.tolist() == expected.tolist(), case


@cuda.jit
def constant_ranges(out):
    a = range(4)
    b = range(10, -10, -7)
    out[0] = len(a) + 10 * len(b) + 100 * len(range(0))
    out[1] = 3 in a and -4 in b and 4 not in a
    for n, i in enumerate(b):
        out[2 + n] = i
    out[6] = a[2] + b[-1]
    r = a if out[0] > 0 else range(2, 9)
    for i in r:
        out[7] += i


def test_ranges_of_constants():
    like_python(constant_ranges, np.zeros(8, np.int64))


@cuda.jit
def mixed(a, t, out):
    n = 0
    for x in (1, 2.5, True, 7):
        if x == 2.5:
            continue
        out[n] = x
        n += 1
    for x in cuda.literal_unroll(t):
        out[n] = x * 2
        n += 1
    else:
        out[n] = -1
        n += 1
    for i, x in enumerate((1, 0.5, a)):
        if i == 2:
            out[n] = i
            n += 1
            continue
        out[n] = i + n
        n += 1
    for x in t:
        if x > 2:
            break
        out[n] = x
        n += 1
    else:
        out[n] = -2
        n += 1
    for x, y in zip((1, 2.5), (0.25, 3)):
        for z in (True, 1.5):
            out[n] = x * y + z
            n += 1
            if z == 1.5:
                break
    for p in ((1, 2), (1.5, 2, 3)):
        out[n] = len(p) + p[0]
        n += 1
    out[-1] = n


@pytest.mark.parametrize("t", [(1, 2.0), (3, 2.5, 1), (0.5,), (1, 1, 9)])
def test_tuples_of_mixed_types(t):
    like_python(mixed, np.zeros(2), t, np.zeros(40))


@cuda.jit
def several_arrays(out, xs, ys, zs):
    i = cuda.grid(1)
    if i < out.size:
        for weight, array in zip((1, 10, 100), (xs, ys, zs)):
            out[i] += weight * array[i]


def test_arrays_of_several_types_in_a_tuple():
    xs, ys, zs = np.arange(70, dtype=np.int8), np.arange(70) * 0.5, np.arange(140, dtype=np.float32)[::2]
    out = np.zeros(70)
    several_arrays[3, 32](out, xs, ys, zs)
    np.testing.assert_allclose(out, xs + 10 * ys + 100 * zs.astype(np.float64))


def found(items, key):
    for i, item in enumerate(items):
        if item == key:
            return i
    return -1


found_in = cuda.jit(device=True)(found)


@cuda.jit
def searched(a, key, out):
    out[0] = found_in(a, key)
    out[1] = found_in((4, 2.5, key), key)
    out[2] = found_in(range(3, 50, 4), key)
    out[3] = found_in(zip(range(2), range(2)), (1, 1))


@pytest.mark.parametrize("key", [4, 7, 9])
def test_loops_that_return(key):
    out = np.zeros(4, np.int64)
    a = np.array([5, 7, 4])
    searched[1, 1](a, key, out)
    expected = [found(a, key), found((4, 2.5, key), key), found(range(3, 50, 4), key), 1]
    assert out.tolist() == expected


@cuda.jit
def lists(a, out):
    n = 0
    for dx, dy in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
        out[n] = dx * 10 + dy
        n += 1
    first = a[0:2]
    for v in [first, a[1:3], a[2:4]]:
        out[n] = v[0] * 10 + v[1]
        n += 1
    for v in [a[0], 2.5, a[2] in [5, 6]]:
        out[n] = v
        n += 1
    for x in a:
        if x in [3, 5, a[3]]:
            out[n] = x
            n += 1
        elif x not in [4]:
            out[n] = -x
            n += 1
    out[n] = sum(x * x for x in [a[0], a[1], 7])


def test_lists_written_where_their_items_are_taken():
    like_python(lists, np.array([3, 4, 5, 6, 8]), np.zeros(20))


def test_what_no_loop_goes_over():
    @cuda.jit
    def number(out):
        for _ in out[0]:
            out[0] = 1

    @cuda.jit
    def twice(out):
        for _ in reversed(zip(out, out)):
            out[0] = 1

    out = np.zeros(1)
    with pytest.raises(weft.CompileError, match="cannot iterate over"):
        number[1, 1](out)
    with pytest.raises(weft.CompileError, match="`reversed` takes"):
        twice[1, 1](out)
