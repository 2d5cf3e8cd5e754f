"""Items of tuples at an index that is not constant."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda

INTEGERS = (3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8)
LARGE = tuple(np.uint64(2**63 + k) for k in range(10))
SMALL = tuple(np.int8(k - 5) for k in range(11))
FLOATS = (0.1, -0.25, 3.5e300, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, float("inf"))
SINGLES = tuple(np.float32(k) / np.float32(3) for k in range(9))
FEW = (2, 3, 5, 7)
FLAGS = tuple(k % 3 == 0 for k in range(12))
PAIRS = tuple((k, 10.0 * k) for k in range(9))


def taken(items, i):
    @cuda.jit
    def kernel(i, out):
        k = cuda.grid(1)
        if k < out.size:
            out[k] = items[i[k]]

    out = np.zeros(i.size, np.asarray(items).dtype)
    kernel[2, 64](i, out)
    return out


@pytest.mark.parametrize("items", [INTEGERS, LARGE, SMALL, FLOATS, SINGLES, FEW, FLAGS], ids=str)
def test_an_index_from_the_data(items):
    n = len(items)
    i = np.random.default_rng(4).integers(-n, n, 100)
    np.testing.assert_array_equal(taken(items, i), np.asarray(items)[i])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_types_of_the_index(dtype):
    i = np.arange(len(INTEGERS)).astype(dtype)
    np.testing.assert_array_equal(taken(INTEGERS, i), INTEGERS)


def test_tuples_in_a_tuple():
    @cuda.jit
    def kernel(i, out):
        k = cuda.grid(1)
        if k < i.size:
            whole, part = PAIRS[i[k]]
            out[k] = whole + part / 100

    i = np.random.default_rng(5).integers(0, len(PAIRS), 50)
    out = np.zeros(50)
    kernel[1, 64](i, out)
    np.testing.assert_allclose(out, i + i / 10)


def test_items_that_are_not_constant():
    @cuda.jit
    def kernel(x, i, out):
        k = cuda.grid(1)
        if k < i.size:
            items = (1, 2, 3, 4, 5, 6, 7, 8, x[k], 10)
            out[k] = items[i[k]]

    i = np.random.default_rng(6).integers(0, 10, 50)
    x = np.arange(50) * 100
    out = np.zeros(50, np.int64)
    kernel[1, 64](x, i, out)
    np.testing.assert_array_equal(out, np.where(i == 8, x, i + 1))


def test_a_loop_over_a_tuple_of_weights():
    @cuda.jit
    def kernel(x, out):
        k = cuda.grid(1)
        total = 0
        for j in range(len(INTEGERS)):
            if k + j < x.size:
                total += INTEGERS[j] * x[k + j]
        if k < out.size:
            out[k] = total

    x = np.random.default_rng(7).integers(-9, 9, 100)
    out = np.zeros(100, np.int64)
    kernel[2, 64](x, out)
    padded = np.concatenate([x, np.zeros(len(INTEGERS), np.int64)])
    expected = sum(weight * padded[j : j + 100] for j, weight in enumerate(INTEGERS))
    np.testing.assert_array_equal(out, expected)


def test_an_index_out_of_range_is_an_error_of_python():
    @cuda.jit(debug=True, opt=False)
    def kernel(i, out):
        out[0] = INTEGERS[i[0]]

    out = np.zeros(1, np.int64)
    with pytest.raises(IndexError, match="tuple index out of range"):
        kernel[1, 1](np.array([12]), out)
