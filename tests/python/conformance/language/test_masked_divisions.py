"""Divisions in branches that few threads take: the quotients are the same for all threads, or are in an address."""

import numpy as np
import pytest
from weft import cuda

ROWS, COLUMNS = 9, 37


def make_modulo():
    @cuda.jit
    def kernel(a, chosen, out, h, g):
        x = cuda.threadIdx.x
        y = cuda.blockIdx.x
        s = np.float32(0)
        if chosen[y, x] < 0:
            s += a[y % h, x]
        out[y, x] = s

    return kernel, lambda y, h, g: y % h


def make_quotient():
    @cuda.jit
    def kernel(a, chosen, out, h, g):
        x = cuda.threadIdx.x
        y = cuda.blockIdx.x
        s = np.float32(0)
        if chosen[y, x] < 0:
            s += a[(y + 3) // h, x]
        out[y, x] = s

    return kernel, lambda y, h, g: (y + 3) // h


def make_nested():
    @cuda.jit
    def kernel(a, chosen, out, h, g):
        x = cuda.threadIdx.x
        y = cuda.blockIdx.x
        s = np.float32(0)
        if chosen[y, x] < 0:
            s += a[(y % h + 1) * 2 % g, x]
        out[y, x] = s

    return kernel, lambda y, h, g: (y % h + 1) * 2 % g


@pytest.mark.parametrize("make", [make_modulo, make_quotient, make_nested])
@pytest.mark.parametrize(("h", "g"), [(ROWS, 5), (4, 7), (-ROWS, 5), (2, 3)])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_only_some_lanes_divide(make, h, g, first):
    kernel, row_of = make()
    a = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) + 1
    chosen = np.ones((ROWS, COLUMNS), np.float32)
    chosen[:, first::2] = -1
    out = np.full((ROWS, COLUMNS), -5, np.float32)
    rows = np.array([row_of(y, h, g) for y in range(ROWS)])
    if rows.max() >= ROWS:
        pytest.skip("the row is outside of the array")
    kernel[ROWS, COLUMNS](a, chosen, out, h, g)
    np.testing.assert_array_equal(out, np.where(chosen < 0, a[rows], 0))


def test_nothing_is_divided_by_zero():
    @cuda.jit
    def kernel(a, chosen, out, h):
        x = cuda.threadIdx.x
        y = cuda.blockIdx.x
        s = np.float32(0)
        if chosen[y, x] < 0 and h != 0:
            s += a[y // h, x] + a[y % h, x]
        out[y, x] = s

    a = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    chosen = np.full((ROWS, COLUMNS), -1, np.float32)
    out = np.full((ROWS, COLUMNS), -5, np.float32)
    kernel[ROWS, COLUMNS](a, chosen, out, 0)
    assert not out.any()
