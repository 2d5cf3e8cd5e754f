"""enumerate, zip and reversed over iterables for which loops are unrolled, and over items of one type."""

# ruff: noqa: B905  (in kernels `zip` has no `strict`)

import numpy as np
import pytest
import weft
from harness import launch, like_python
from weft import cuda


@cuda.jit
def mixed_backwards(x, out):
    i = cuda.grid(1)
    items = (x[i], 2.5, True)
    for item in reversed(items):
        out[i, 0] = out[i, 0] * 4 + item
    for number, item in enumerate(reversed(items), 3):
        if number == 4:
            continue
        out[i, 1] += number * item
    for one, other in zip(items, reversed(items)):
        if one == 2.5:
            break
        out[i, 2] += one * 8 + other
    else:
        out[i, 2] = -1
    for number, (one, other) in enumerate(zip(reversed(items), items)):
        out[i, 3] += number * one - other


def test_tuples_of_several_types_backwards():
    x = np.arange(-2, 4)
    (_, out) = launch(mixed_backwards, 1, 6, x, np.zeros((6, 4)))
    expected = [
        [(1 * 4 + 2.5) * 4 + item, 3 + 5 * item, item * 8 + 1, (0 - item) + (2.5 - 2.5) + (2 * item - 1)]
        for item in x.tolist()
    ]
    np.testing.assert_array_equal(out, np.array(expected, float))


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_rows_backwards(dtype):
    @cuda.jit
    def rows(a, out):
        i = cuda.grid(1)
        for number, (one, other) in enumerate(zip(reversed(a[i]), a[i]), start=i):
            out[i] += number * one - other

    a = np.arange(12).reshape(3, 4).astype(dtype)
    (_, out) = launch(rows, 1, 3, a, np.zeros(3))
    expected = [
        sum(number * one - other for number, (one, other) in enumerate(zip(row[::-1], row, strict=True), start=i))
        for i, row in enumerate(a.tolist())
    ]
    np.testing.assert_array_equal(out, np.array(expected, float))


@cuda.jit
def taken(x, out):
    it = iter((1.5, 2.0, 3.5))
    out[0] = next(it)
    out[1] = next(it) + 10 * next(it)
    out[2] = next(it, -1.0)
    out[3] = next(it, 7)
    numbers = iter(range(2, x.size, 2))
    for n in numbers:
        out[4] += n
        if n == 6:
            break
    for n in numbers:
        out[5] = out[5] * 100 + n + next(numbers, 0)
    else:
        out[6] = 1
    for n in numbers:
        out[6] = n
    elements = iter(x)
    total = next(elements)
    for pair in zip(x[:3], x[3:6]):
        total += pair[0] * pair[1]
    for e in elements:
        total += e
        next(elements, 0)
    out[7] = total
    for row in range(3):
        it = iter(x[row:])
        next(it)
        out[8] += next(it) * 10**row
    i, e = next(iter(enumerate(x, 5)))
    out[9] = i + e


def test_iter_and_next():
    like_python(taken, np.arange(1.0, 20.0), np.zeros(10))


@cuda.jit
def runs_out(x, out):
    i = cuda.grid(1)
    it = iter(x[:i])
    out[i, 0] = next(it)
    out[i, 1] = next(it)
    out[i, 2] = next(it)


def test_a_thread_ends_where_an_iterator_has_no_next_item():
    out = np.zeros((4, 3))
    runs_out[1, 4](np.array([1.0, 2.0, 3.0]), out)
    assert out.tolist() == [[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 3]]


def test_an_iterator_has_one_variable_and_one_function():
    @cuda.jit
    def two(out):
        a = iter(range(3))
        b = a
        out[0] = next(b)

    with pytest.raises(weft.CompileError, match="an iterator can be assigned to one variable only"):
        two[1, 1](np.zeros(1))

    @cuda.jit
    def nested(out):
        a = (iter(range(3)), 1)
        out[0] = next(a[0])

    with pytest.raises(weft.CompileError, match="an iterator can be assigned to one variable only"):
        nested[1, 1](np.zeros(1))

    @cuda.jit(device=True)
    def first(iterator):
        return next(iterator)

    @cuda.jit
    def passes(out):
        out[0] = first(iter(range(3)))

    with pytest.raises(weft.CompileError, match="an iterator cannot be passed to or returned from a function"):
        passes[1, 1](np.zeros(1))

    @cuda.jit
    def no_iterator(x, out):
        out[0] = next(x)

    with pytest.raises(weft.CompileError, match=r"`next` takes an iterator, not array.*"):
        no_iterator[1, 1](np.zeros(1), np.zeros(1))
