"""Lambdas and inner functions, `*args`, keyword arguments and `del`."""

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda


@cuda.jit
def late(out, n):
    k = n
    add = lambda x: x + k  # noqa: E731
    out[0] = add(1)
    k = 100
    out[1] = add(1)

    def scaled(x, by=k):
        return x * by + k

    k = 7
    out[2] = scaled(2)
    out[3] = scaled(2, 3)
    out[4] = scaled(by=4, x=1)
    for k in range(3):  # noqa: B007
        out[5] += add(10)
    t = (lambda: k, lambda: k + 1)
    out[6] = t[0]() + t[1]()
    out[7] = (lambda x, y=2: x - y)(9)


def test_variables_are_read_when_it_is_called():
    like_python(late, np.zeros(8), 5)


@cuda.jit
def pure(out):
    def square(x):
        """x times x."""
        return x * x

    def both(x, y):
        if x > y:
            return square(x) - y
        return square(y) - x

    out[0] = both(3, 4)
    out[1] = both(4, 2.5)
    out[2] = square(1.5) + square(2)


def test_inner_functions_call_each_other():
    like_python(pure, np.zeros(3))


def apply(function, n):
    total = 0
    for i in range(n):
        total += function(i)
    return total


def compose(f, g):
    return lambda x: f(g(x))


def line(slope, offset=1):
    def at(x):
        return slope * x + offset

    return at


device_apply = cuda.jit(device=True)(apply)
device_compose = cuda.jit(device=True)(compose)
device_line = cuda.jit(device=True)(line)


@cuda.jit
def passed(out, n):
    k = n * 2
    out[0] = device_apply(lambda i: i * k, n)

    def odd(i):
        return i % 2 * k

    out[1] = device_apply(odd, n)
    f = device_line(n)
    g = device_line(2, offset=k)
    out[2] = f(3) + g(4)
    h = device_compose(f, g)
    out[3] = h(5)
    out[4] = device_apply(h, 4)


@pytest.mark.parametrize("n", [0, 3, 6])
def test_functions_are_passed_and_returned(n):
    out = np.zeros(5)
    passed[1, 1](out, n)
    k = n * 2
    f, g = line(n), line(2, offset=k)
    h = compose(f, g)
    expected = [apply(lambda i: i * k, n), apply(lambda i: i % 2 * k, n), f(3) + g(4), h(5), apply(h, 4)]
    assert out.tolist() == expected


@cuda.jit
def stores(out, local_size):
    n = local_size

    def put(i, value):
        out[i] = value + n

    for i in range(4):
        put(i, i * i)
    flags = cuda.local.array(4, np.int64)

    def mark(i):
        flags[i] = i + 1

    mark(2)
    mark(3)
    out[0] = flags[2] * flags[3]


def test_inner_functions_write_to_arrays():
    out = np.zeros(4)
    stores[1, 1](out, 10)
    assert out.tolist() == [12, 11, 14, 19]


@cuda.jit
def by_threads(x, out):
    i = cuda.grid(1)
    half = lambda v: v / 2 + i  # noqa: E731
    if i < x.size:
        out[i] = half(x[i])


def test_each_thread_has_its_own_variables():
    x, out = np.arange(100.0), np.zeros(100)
    by_threads[4, 32](x, out)
    np.testing.assert_array_equal(out, x * 1.5)


def summed(first, *rest, scale=1):
    total = first
    for item in rest:
        total += item
    return total * scale + len(rest)


def outer(a, *rest):
    if len(rest) == 0:
        return a
    return a * 10 + rest[-1]


device_summed = cuda.jit(device=True)(summed)
device_outer = cuda.jit(device=True)(outer)


@cuda.jit
def star_arguments(out, t, n):
    out[0] = device_summed(1)
    out[1] = device_summed(1, 2.5, n)
    out[2] = device_summed(*t)
    out[3] = device_summed(n, *t, *(1, 2), scale=3)
    out[4] = device_summed(scale=2, first=n)
    out[5] = device_outer(*t[1:])
    out[6] = device_outer(*t, n)


def test_star_arguments():
    t, n = (3, 4.5, 5), 6
    out = np.zeros(7)
    star_arguments[1, 1](out, t, n)
    assert out.tolist() == [
        summed(1),
        summed(1, 2.5, n),
        summed(*t),
        summed(n, *t, *(1, 2), scale=3),
        summed(scale=2, first=n),
        outer(*t[1:]),
        outer(*t, n),
    ]


@cuda.jit
def deleted(out, n):
    x = n
    out[0] = x
    del x
    x = 2.5
    y = z = 1
    out[1] = x
    del (y, z)
    for i in range(n):
        y = i
        out[2] += y
        del y


def test_del():
    like_python(deleted, np.zeros(3), 4)


def test_a_deleted_variable_has_no_value():
    @cuda.jit
    def kernel(out):
        x = 1
        del x
        out[0] = x  # noqa: F821

    with pytest.raises(weft.CompileError, match="E0204"):
        kernel[1, 1](np.zeros(1))


def test_what_inner_functions_cannot_do():
    @cuda.jit
    def decorated(out):
        @cuda.jit
        def f(x):
            return x

        out[0] = f(3)

    out = np.zeros(1)
    with pytest.raises(weft.CompileError, match="decorator"):
        decorated[1, 1](out)


@cuda.jit
def counts(out):
    n = 0

    def add(k):
        nonlocal n
        n += k
        return n

    out[0] = add(2)
    out[1] = add(5)
    out[2] = n + add(1) * 10 + n
    for i in range(3):
        add(i)
    out[3] = n


def test_nonlocal_assigns_to_the_function_around_it():
    like_python(counts, np.zeros(4))


@cuda.jit
def counts_deep(out):
    n = 0
    m = 1.5

    def outer(k):
        turns = 1

        def inner():
            nonlocal n, turns
            n += k
            turns += 1

        inner()
        inner()
        return turns

    for i in range(3):
        out[i] = outer(i)
    out[3] = n

    def widen():
        nonlocal n, m
        n = m
        m = 7.25
        if out[0] > 100:
            return
        n += 1

    widen()
    out[4] = n
    out[5] = m


def test_nonlocal_through_two_functions_and_with_other_types():
    like_python(counts_deep, np.zeros(6))


@cuda.jit
def branches_beside_nonlocal(out):
    n = 0
    wide = 8

    def count():
        nonlocal n
        n += 1
        if wide > 6:
            return 3
        return 2.5

    out[0] = count() | 4  # an integer, as the other path is never taken
    out[1] = n


def test_what_is_known_is_known_beside_nonlocal():
    like_python(branches_beside_nonlocal, np.zeros(2, np.int64))


@cuda.jit
def rebound(first, second):
    a = first

    def other():
        nonlocal a
        a = second
        return 3

    def put(x, i, value):
        x[i] = value

    put(a, other(), 1.0)
    put(a, other() + 1, 2.0)


def test_an_argument_is_what_it_was_when_it_was_evaluated():
    like_python(rebound, np.zeros(5), np.zeros(5))


def test_what_assigns_outside_of_it_stays_where_it_is():
    @cuda.jit
    def escapes(out):
        n = 0

        def add():
            nonlocal n
            n += 1

        def call(function):
            function()

        call(add)
        out[0] = n

    with pytest.raises(weft.CompileError, match="`add` assigns to `n` of the enclosing function"):
        escapes[1, 1](np.zeros(1))
    total = 0

    @cuda.jit
    def counts_outside(out):
        nonlocal total
        total += 1
        out[0] = total

    with pytest.raises(weft.CompileError, match="cannot assign to `total`, a variable of a function outside"):
        counts_outside[1, 1](np.zeros(1))


SIZE = 3


def test_globals_that_are_only_read_may_be_declared():
    @cuda.jit
    def reads(out):
        global SIZE
        out[0] = SIZE

    out = np.zeros(1)
    reads[1, 1](out)
    assert out[0] == 3

    @cuda.jit
    def writes(out):
        global SIZE
        SIZE = 4
        out[0] = SIZE

    with pytest.raises(weft.CompileError, match="cannot assign to the global `SIZE`"):
        writes[1, 1](np.zeros(1))
