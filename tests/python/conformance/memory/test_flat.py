"""`a.flat`: elements by their index in C order, for any layout, and `a.ctypes.data`."""

from __future__ import annotations

import numpy as np
import pytest
import weft.errors
from weft import cuda

LAYOUTS = [
    np.arange(24.0).reshape(2, 3, 4),
    np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    np.arange(96.0).reshape(4, 6, 4)[::2, ::-2, ::1],
    np.arange(20.0)[::3],
    np.arange(7.0),
    np.array(3.0),
]


@cuda.jit
def over(x, out):
    for k in range(len(x.flat)):
        out[k] = x.flat[k] * 2 + x.flat[k - len(x.flat)]
        x.flat[k] = k
        x.flat[k] += 0.5
    total = 0.0
    for value in x.flat:
        total += value
    out[-1] = total


@pytest.mark.parametrize("x", LAYOUTS)
def test_elements_by_their_number(x) -> None:
    mine, theirs = x.copy(order="K"), x.copy(order="K")
    got, expected = np.zeros(x.size + 1), np.zeros(x.size + 1)
    over[1, 1](mine, got)
    over.py_func(theirs, expected)
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(got, expected)


@cuda.jit(boundscheck=True)
def beyond(x, k, out):
    out[0] = x.flat[k]


def finished(kernel, *args) -> None:
    kernel[1, 1](*args)
    cuda.synchronize()


@pytest.mark.parametrize("x", LAYOUTS)
@pytest.mark.parametrize("beside", [0, 1])
def test_bounds(x, beside) -> None:
    for k in (x.size + beside, -x.size - 1 - beside):
        with pytest.raises(IndexError):
            finished(beyond, x, k, np.zeros(1))


def test_one_integer_is_an_index() -> None:
    @cuda.jit
    def slices(x, out):
        out[0] = x.flat[1:2].sum()

    with pytest.raises(weft.errors.CompileError, match=r"`a\.flat` takes one integer as its index"):
        slices[1, 1](np.ones((2, 2)), np.zeros(1))


@cuda.jit
def addresses(x, out):
    local = cuda.local.array(4, np.float64)
    shared = cuda.shared.array((2, 4), np.float64)
    view = shared[1, 1:]
    pointers = x.ctypes
    out[0] = x[1, 2:].ctypes.data - pointers.data
    out[1] = local[1:].ctypes.data - local.ctypes.data
    out[2] = view.ctypes.data - shared.ctypes.data
    out[3] = x.ctypes.data


def test_addresses() -> None:
    x, out = cuda.to_device(np.zeros((3, 5), np.float32)), np.zeros(4, np.uint64)
    addresses[1, 1](x, out)
    assert out.tolist() == [7 * 4, 8, 5 * 8, x.__cuda_array_interface__["data"][0]]
