"""Attributes of arrays and scalars."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def extents(x, out):
    out[0] = x.size
    out[1] = x.ndim
    out[2] = x.shape[0]
    out[3] = x.shape[-1]
    out[4] = len(x)
    out[5] = len(x.shape)
    out[6] = x.itemsize
    out[7] = x.nbytes


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (0,), (3, 0)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
def test_extents(shape, dtype):
    out = run(extents, 1, 1, np.zeros(shape, dtype), np.zeros(8, np.int64))[1]
    assert out[:2].tolist() == [np.prod(shape), len(shape)]


@cuda.jit
def strides(x, out):
    out[0] = x.strides[0]
    out[1] = x.strides[1]
    out[2] = x.strides[-1]
    out[3] = len(x.strides)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.int16, np.float64])
def test_strides_are_in_bytes(order, dtype):
    x = np.zeros((3, 4), dtype, order=order)
    out = run(strides, 1, 1, x, np.zeros(4, np.int64))[1]
    assert out.tolist() == [*x.strides, x.strides[-1], 2]


@cuda.jit
def view_attributes(x, out):
    part = x[1:, ::2]
    out[0] = part.shape[0]
    out[1] = part.shape[1]
    out[2] = part.strides[0]
    out[3] = part.strides[1]
    out[4] = part.size
    out[5] = part.ndim
    out[6] = x[1].ndim
    out[7] = x[0].size


def test_attributes_of_views():
    run(view_attributes, 1, 1, np.zeros((4, 6), np.float32), np.zeros(8, np.int64))


@cuda.jit
def typed(x, out):
    i = cuda.grid(1)
    scratch = cuda.local.array(2, x.dtype)
    scratch[0] = x[i] * 1.75
    out[i] = scratch[0]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float32, np.float64])
def test_dtype_makes_local_arrays(dtype):
    run(typed, 1, 8, np.arange(8).astype(dtype), np.zeros(8))


@cuda.jit
def parts(x, out):
    i = cuda.grid(1)
    out[i, 0] = x[i].real
    out[i, 1] = x[i].imag


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.float32, np.int32])
def test_real_and_imag(dtype):
    x = np.arange(4).astype(dtype)
    if x.dtype.kind == "c":
        x *= 1 - 2j
    run(parts, 1, 4, x, np.zeros((4, 2)))


@cuda.jit
def types_of_dtypes(x, out):
    zero = x.dtype.type(0)
    zero += x[0]
    out[0] = zero
    out[1] = x.dtype.type(3.75)
    out[2] = x.dtype.itemsize
    out[3] = NARROW.type(300)


NARROW = np.dtype("float32")


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "float64"])
def test_the_type_of_a_dtype_casts(dtype):
    run(types_of_dtypes, 1, 1, np.array([5], dtype), np.zeros(4))
