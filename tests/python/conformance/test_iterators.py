"""enumerate, zip and reversed over what a loop has a body for each item of, and of one type."""

# ruff: noqa: B905  (in kernels `zip` has no `strict`)

import numpy as np
import pytest
from harness import launch
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
