"""Values that are None on some paths."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from harness import launch, like_python, run
from weft import CompileError, cuda

Pair = namedtuple("Pair", "key value")


@cuda.jit(device=True)
def find(x, wanted):
    for i in range(x.size):
        if x[i] == wanted:
            return i
    return None


@cuda.jit(device=True)
def find_last(x, wanted):
    i = x.size
    while i > 0:
        i -= 1
        if x[i] == wanted:
            return i


@cuda.jit
def search(x, wanted, out):
    i = cuda.grid(1)
    if i >= wanted.size:
        return
    at = find(x, wanted[i])
    out[i, 0] = -1 if at is None else at
    last = find_last(x, wanted[i])
    if last is not None and x[last] == wanted[i]:
        out[i, 1] = last + 1
    if (first := find(x, wanted[i])) is not None:
        out[i, 2] = first * 10
    else:
        out[i, 2] = -10


def test_a_function_returns_none_on_some_paths():
    x = np.array([3, 1, 4, 1, 5])
    _, _, out = run(search, 1, 8, x, np.arange(8), np.zeros((8, 3), np.int64))
    assert out[1].tolist() == [1, 4, 10]
    assert out[2].tolist() == [-1, 0, -10]


@cuda.jit
def largest(x, out):
    row = cuda.grid(1)
    best = None
    where = None
    for i in range(x.shape[1]):
        if x[row, i] < 0:
            continue
        if best is None or x[row, i] > best:
            best = x[row, i]
            where = i
    out[row, 0] = best if best is not None else -1
    out[row, 1] = where if where is not None else -1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_a_variable_is_none_at_first(dtype):
    x = (np.arange(40).reshape(8, 5) * 7 % 11 - 3).astype(dtype)
    x[2] = -1
    _, out = run(largest, 2, 4, x, np.zeros((8, 2)))
    assert out[2].tolist() == [-1, -1]


@cuda.jit
def asking(x, out):
    i = cuda.grid(1)
    v = None
    if i % 3:
        v = x[i]
    out[i, 0] = v is None
    out[i, 1] = v is not None
    out[i, 2] = not v
    out[i, 3] = v == None  # noqa: E711
    out[i, 4] = v != None  # noqa: E711
    out[i, 5] = v == 4
    out[i, 6] = 4 != v
    out[i, 7] = not (not v)
    out[i, 8] = True if v else False
    out[i, 9] = v is not None and v > 3
    out[i, 10] = v is None or v > 3
    out[i, 11] = not (v is None or i == 4) and v + 1 > 5
    out[i, 12] = v is not None or i > 7
    out[i, 13] = v in (1, 4)
    w = None
    if i % 2:
        w = x[i] // 2 * 2
    out[i, 14] = v == w
    out[i, 15] = v != w
    out[i, 16] = (v or 7) == 7
    out[i, 17] = (v and 3) == 3


def test_what_is_asked_of_such_a_value():
    run(asking, 1, 12, np.arange(12) % 6, np.zeros((12, 18), np.bool_))


@cuda.jit
def classes(x, out):
    i = cuda.grid(1)
    v = None
    if i % 3:
        v = x[i]
    out[i, 0] = isinstance(v, int)
    out[i, 1] = isinstance(v, float) or (bool(v) != (v is not None and v != 0))
    t = (v, i) if i > 1 else None
    out[i, 2] = isinstance(t, tuple) and t[0] is None


def test_none_is_of_no_other_class():
    _, out = launch(classes, 1, 6, np.arange(6), np.zeros((6, 3), np.bool_))
    assert out[:, 0].tolist() == [False, True, True] * 2
    assert not out[:, 1].any()
    assert out[:, 2].tolist() == [False, False, False, True, False, False]


@cuda.jit
def used_at_once(x, out):
    i = cuda.grid(1)
    v = None
    if i % 3:
        v = x[i]
    out[i] = 1
    out[i] += v
    out[i] += 10


@cuda.jit(device=True)
def halved(v):
    return v / 2


@cuda.jit(device=True)
def half_of(x, i):
    v = None
    if i % 3:
        v = x[i]
    return halved(v)


@cuda.jit
def used_in_a_function(x, out):
    i = cuda.grid(1)
    out[i] = 1
    out[i] = half_of(x, i)


@cuda.jit
def used_as_an_index(x, out):
    i = cuda.grid(1)
    out[i] = 1
    at = find(x, i)
    out[i] = x[at] + 0.5


def test_a_thread_that_computes_with_none_ends():
    x = np.arange(6, dtype=np.float64)
    out = launch(used_at_once, 1, 6, x, np.zeros(6))[-1]
    assert out.tolist() == [1, 12, 13, 1, 15, 16]
    out = launch(used_in_a_function, 1, 6, x, np.zeros(6))[-1]
    assert out.tolist() == [1, 0.5, 1, 1, 2, 2.5]
    out = launch(used_as_an_index, 1, 6, np.array([4, 0, 2]), np.zeros(6))[-1]
    assert out.tolist() == [0.5, 1, 2.5, 1, 4.5, 1]


@cuda.jit
def next_or(x, out):
    i = cuda.grid(1)
    it = iter(x[:2])
    v = None
    if i % 2:
        v = -1.0
    for j in range(3):
        item = next(it, v)
        out[i, j] = 100 if item is None else item
        last = next(iter(x[:0]), None)
        out[i, j] += 0.5 if last is None else last


def test_the_default_of_next_may_be_none():
    for n in (1, 2):
        _, out = launch(next_or, 1, n, np.arange(3.0), np.zeros((n, 3)))
        assert out.tolist() == [[0.5, 1.5, 100.5], [0.5, 1.5, -0.5]][:n]


@cuda.jit(device=True)
def or_else(v, other):
    return other if v is None else v


@cuda.jit(device=True)
def twice(v):
    if v is None:
        return None
    return v * 2


@cuda.jit
def passed_on(x, out):
    i = cuda.grid(1)
    v = x[i] if i % 2 else None
    out[i, 0] = or_else(v, -1)
    out[i, 1] = or_else(twice(v), -2)
    out[i, 2] = or_else(None, -3) + or_else(2.5, 0)
    w = v
    if w is None:
        w = 7
    out[i, 3] = w


def test_such_values_are_passed_and_returned():
    run(passed_on, 1, 6, np.arange(6, dtype=np.int16), np.zeros((6, 4)))


@cuda.jit(device=True)
def bounds(x, low):
    found = None
    for i in range(x.size):
        if x[i] >= low:
            found = (i, x[i]) if found is None else (found[0], x[i])
    return found


@cuda.jit
def of_tuples(x, out):
    i = cuda.grid(1)
    found = bounds(x, i)
    match found:
        case None:
            out[i, 0] = -1
        case (a, b):
            out[i, 0] = a
            out[i, 1] = b
    if found:
        first, last = found
        out[i, 2] = first + last


def test_tuples_that_may_be_missing():
    run(of_tuples, 1, 9, np.array([2.0, 5.0, 3.0, 7.5]), np.zeros((9, 3)))


@cuda.jit
def patterns(x, out):
    i = cuda.grid(1)
    match bounds(x, i):
        case (0, last):
            out[i] = last
        case (_, _):
            out[i] = 1
        case None:
            out[i] = -1


def test_a_pattern_of_items_does_not_match_none():
    _, out = launch(patterns, 1, 9, np.array([2.0, 5.0, 3.0, 7.5]), np.zeros(9))
    assert out.tolist() == [7.5, 7.5, 7.5, 1, 1, 1, 1, 1, -1]


@cuda.jit
def of_arrays(x, y, out):
    i = cuda.grid(1)
    a = None
    if i == 1:
        a = x
    elif i > 1:
        a = y[::2]
    out[i] = a.sum() if a is not None else -1.0
    if a is None:
        a = y[i:3]
    out[i] += a.size * 100


def test_arrays_that_may_be_missing():
    run(of_arrays, 1, 4, np.arange(3.0), np.arange(6.0), np.zeros(4))


@cuda.jit
def of_objects(x, out):
    i = cuda.grid(1)
    best = None
    for j in range(x.size):
        p = Pair(j, x[j])
        if x[j] > i and (best is None or p.value < best.value):
            best = p
    z = None
    if i % 2:
        z = x[i] + 1j
    out[i] = 0 if best is None else best.key + best.value * 10
    if z is not None:
        out[i] += z.imag


def test_objects_and_complex_numbers_that_may_be_missing():
    x = np.array([5.0, 2, 9, 4, 3, 3, 8, 1, 7, 2])
    out = launch(of_objects, 1, 10, x, np.zeros(10))[-1]
    expected = []
    for i in range(10):
        above = [(v, j) for j, v in enumerate(x) if v > i]
        expected.append((min(above)[1] + min(above)[0] * 10 if above else 0) + i % 2)
    assert out.tolist() == expected


@cuda.jit
def linked(following, out):
    node = cuda.grid(1)
    length = 0
    at = node
    while at is not None:
        length += 1
        at = following[at] if following[at] >= 0 else None
    out[node] = length


@cuda.jit
def left_with_a_value(x, out):
    i = cuda.grid(1)
    found = None
    j = 0
    while found is None and j < x.size:
        if x[j] > i:
            found = x[j]
        j += 1
    else:
        j += 100
    out[i] = j if found is None else found + j


@cuda.jit
def asserted(x, out):
    i = cuda.grid(1)
    v = x[i] if i % 2 else None
    assert v is not None
    out[i] = v + 1


def test_loops_and_assertions():
    run(linked, 1, 6, np.array([1, 2, -1, 2, 3, -1]), np.zeros(6, np.int64))
    run(left_with_a_value, 1, 8, np.array([1, 3, 5]), np.zeros(8, np.int64))
    run(asserted, 1, 6, np.arange(6), np.zeros(6, np.int64))


@cuda.jit(device=True)
def depth_of(left, right, key, wanted, node):
    if node < 0:
        return None
    if key[node] == wanted:
        return 0
    below = depth_of(left, right, key, wanted, left[node] if wanted < key[node] else right[node])
    return None if below is None else below + 1


@cuda.jit
def depths(left, right, key, out):
    i = cuda.grid(1)
    depth = depth_of(left, right, key, i, 0)
    out[i] = -1 if depth is None else depth


def test_a_recursion_returns_none_on_some_paths():
    left = np.array([1, 3, -1, -1, -1])
    right = np.array([2, 4, -1, -1, -1])
    _, _, _, out = run(depths, 1, 12, left, right, np.array([8, 3, 10, 1, 6]), np.zeros(12, np.int64))
    assert out.tolist() == [-1, 2, -1, 1, -1, -1, 2, -1, 0, -1, 1, -1]


@cuda.jit
def across_barriers(x, out):
    tile = cuda.shared.array(32, np.float64)
    i = cuda.threadIdx.x
    v = None
    if x[i] > 3:
        v = x[i]
    tile[i] = 0 if v is None else v
    cuda.syncthreads()
    if v is not None:
        v += tile[(i + 1) % 32]
    cuda.syncthreads()
    tile[i] = i
    cuda.syncthreads()
    out[i] = tile[31 - i] if v is None else v


def test_such_a_value_lives_across_barriers():
    run(across_barriers, 1, 32, np.arange(32.0) * 5 % 7, np.zeros(32))


@cuda.jit
def inner(out):
    v = None
    n = out.size

    def grow():
        nonlocal v
        if v is None:
            v = n
        else:
            v = None if n > 3 else v + 1
        return True

    for _ in range(n):
        if v is None and grow() and v is not None:
            out[0] += v
        grow()
    out[1] = -1 if v is None else v


def test_an_inner_function_assigns_it():
    for n in range(2, 6):
        like_python(inner, np.zeros(n))


@cuda.jit
def known(x, n, out):
    # With a constant None, the other branch is not typed.
    if n is None:
        out[0] = x[0]
    else:
        out[0] = n[0]
    m = None
    if m is not None:
        out[0] = m.nothing


def test_a_none_that_is_known_chooses_a_branch():
    run(known, 1, 1, np.ones(1), None, np.zeros(1))
    run(known, 1, 1, np.ones(1), np.full(1, 3.0), np.zeros(1))


@cuda.jit(device=True)
def make_list(n):
    if n <= 0:
        return None
    return n, make_list(n - 1)


def test_what_cannot_be():
    @cuda.jit
    def grows(out):
        make_list(3)

    @cuda.jit
    def asks(out):
        v = None
        if out[0] > 0:
            v = 1
        if type(v) is int:
            out[0] = 1

    @cuda.jit
    def bound(out):
        v = None
        if out[0] > 0:
            v = 1
        out[:v] = 3

    with pytest.raises(CompileError, match="grows with each recursive call"):
        grows[1, 1](np.zeros(1))
    with pytest.raises(CompileError, match="known only at run time"):
        asks[1, 1](np.zeros(1))
    with pytest.raises(CompileError, match="known only at run time"):
        bound[1, 1](np.zeros(1))


@cuda.jit
def vector_of_optionals(x, out):
    i = cuda.grid(1)
    v = None
    if x[i] > 2:
        v = x[i]
    q = cuda.float32x2((v, 2))
    out[i] = q.x + q.y


def test_lanes_of_a_tuple_that_may_have_none():
    x = np.array([1.0, 3.0, 2.0, 7.0])
    *_, out = launch(vector_of_optionals, 1, 4, x, np.full(4, -1.0))
    assert out.tolist() == [-1, 5, -1, 9]
