"""Assignments to whole views and updates: `a[1:] += b`, tuples, broadcasting; zero-dimensional arrays."""

import numpy as np
import pytest
import weft
from harness import like_python
from weft import cuda


@cuda.jit
def updated(a, b, m):
    a[1:5] += b[1:5]
    a[:2] *= 2
    a[::3] -= b[::3]
    a[4:] /= 4
    a[2:4] **= 2
    a += b
    m[:, 1] *= 3
    m[1] += b[:4]
    m[0, 1:] -= (1, 2.5, 3)
    m[:2] += m[2]
    row = m[2]
    row += 1
    row *= b[:4]
    m += (1, 2, 3, 4)
    m.T[1] += b[:3]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_updates(dtype, order):
    a, b = np.arange(8).astype(dtype) + 1, np.arange(8).astype(dtype) * 10 + 1
    like_python(updated, a, b, np.arange(12).reshape(3, 4).astype(dtype, order=order))


@cuda.jit
def of_integers(a, n):
    a[1:3] //= n
    a[3:] >>= 1
    a[:1] <<= n
    a[:] |= 1
    a[::2] ^= a[1::2]
    a[-2:] %= 5
    a[1:1] += n


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_updates_of_integers(dtype):
    like_python(of_integers, np.arange(8).astype(dtype) + dtype(5), dtype(2))


def test_a_row_each_thread():
    @cuda.jit
    def kernel(m, scale):
        i = cuda.grid(1)
        if i < m.shape[0]:
            m[i] *= scale[i]
            m[i, 1:] += m[i, :-1].sum()

    m, scale = np.arange(40.0).reshape(8, 5), np.arange(8.0)
    expected = m * scale[:, None]
    expected[:, 1:] += expected[:, :-1].sum(axis=1, keepdims=True)
    kernel[2, 5](m, scale)
    np.testing.assert_array_equal(m, expected)


@cuda.jit
def records(r, n):
    r.x += 1
    r["y"][1:] *= n
    r[0].v += (1, 2)
    r[1].v[:] *= 2


def test_fields():
    dtype = np.dtype([("x", "f4"), ("y", "i8"), ("v", "i2", 2)])
    r = np.array([(1, 2, (3, 4)), (5, 6, (7, 8)), (9, 10, (11, 12))], dtype)
    expected = r.copy()
    expected["x"] += 1
    expected["y"][1:] *= 3
    expected["v"][0] += (1, 2)
    expected["v"][1] *= 2
    records[1, 1](r, 3)
    assert (r == expected).all()


@cuda.jit
def spread(m, row, one, column, out):
    m[:] = row
    m[1:3] = one
    out[:] = column
    out[:, 1:] += one[0]
    out[0] = row[None]
    out[1:] -= column[1:] * 0 if False else 1


@cuda.jit
def spread_views(m, row, column, k):
    m[:] = row[:k]
    m[1:] += column[1:]
    m[:, :2] *= column
    m[2] = row


def test_broadcasting():
    like_python(spread, np.zeros((4, 3)), np.arange(3.0), np.array([7.0]), np.arange(4.0)[:, None], np.ones((4, 3)))
    row, column = np.arange(3.0) + 1, np.arange(4.0)[:, None] + 1
    for k in (1, 3):
        like_python(spread_views, np.zeros((4, 3)), row, column, k)


@cuda.jit
def tuples(m, cube):
    m[1:3, :] = (1, 2, 3)
    m[0] = (4, 5.5, 6)
    m[2:] = ((1, 2, 3), m[1])
    m[3, :] = (9,)
    cube[...] = ((1, 2), (3, 4), (5, 6))
    cube[1] += (10, 20)
    cube[:, 1] = (cube[0, 0], cube[1, 2])[1]


def test_tuples_into_views():
    like_python(tuples, np.zeros((4, 3)), np.zeros((2, 3, 2)))


def test_what_does_not_fit():
    @cuda.jit
    def deep(m):
        m[0] = ((1, 2), (3, 4))

    @cuda.jit
    def more(m, a):
        m[0] = a

    m = np.zeros((2, 3))
    for kernel, args in ((deep, (m,)), (more, (m, m))):
        with pytest.raises(weft.CompileError, match="cannot be stored"):
            kernel[1, 1](*args)

    @cuda.jit
    def known(m):
        m[:, 0:3][0, 0:3] += (1, 2)
        cuda.local.array(3, np.float64)[:] += (1, 2)

    with pytest.raises(weft.CompileError, match="2 values cannot be stored into a slice of 3"):
        known[1, 1](m)


def test_a_constant_array_is_not_updated():
    table = np.arange(4)

    @cuda.jit
    def kernel(out):
        t = cuda.const.array_like(table)
        t[1:] += 1
        out[0] = t[0]

    with pytest.raises(weft.CompileError, match="read-only"):
        kernel[1, 1](np.zeros(1))


@cuda.jit
def of_none(a, i, x, out):
    out[0] = a[i]
    a[i] = 7
    a[i] += 1
    out[1] = a[i - 1 :][0]
    out[2] = x + 1
    out[3] = x * a[i] - x
    out[4] = x < a[i]
    out[5] = x
    x += 2.5
    out[6] = x[()]
    out[7] = 2 in (i, 2)


def test_arrays_without_dimensions():
    like_python(of_none, np.arange(5.0), np.array(3), np.array(2.5), np.zeros(8))
