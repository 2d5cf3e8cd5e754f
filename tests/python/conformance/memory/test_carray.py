"""`weft.carray` and `weft.farray`: arrays over pointers, in kernels and on the host."""

from __future__ import annotations

import ctypes
import pickle

import numpy as np
import pytest
import weft
from harness import module
from weft import CompileError, carray, cuda, farray, types

FLOAT = types.CPointer(types.float32)
POINT = np.dtype([("x", np.float32), ("v", np.int16, (2, 3)), ("n", np.int64)])


def address(array) -> int:
    """The address of a device array."""
    return array.device_pointer


@pytest.mark.parametrize(("make", "order"), [(carray, "C"), (farray, "F")])
def test_the_order_is_that_of_the_name(make, order):
    @cuda.jit(types.void(FLOAT, types.int64, types.int32, types.float32[:, :, :]))
    def kernel(p, n, m, out):
        a = make(p, (n, m, 2))
        i, j = cuda.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            for k in range(a.shape[2]):
                out[i, j, k] = a[i, j, k]
            a[-i - 1, j, 1] += 100

    shape = (5, 7, 2)
    host = np.arange(70, dtype=np.float32)
    x, out = cuda.to_device(host), cuda.to_device(np.zeros(shape, np.float32))
    kernel[(1, 2), (8, 4)](address(x), 5, 7, out)
    expected = host.copy().reshape(shape, order=order)
    # Each thread adds 100 to an element that another one reads: compare modulo 100.
    assert (out.copy_to_host() % 100).tolist() == (expected % 100).tolist()
    expected[:, :, 1] += 100
    assert x.copy_to_host().tolist() == expected.ravel(order="K").tolist()


@pytest.mark.parametrize("make", [carray, farray])
def test_one_dimension_is_contiguous_in_both(make):
    @cuda.jit("float32(float32[::1])", device=True)
    def total(a):
        result = weft.float32(0)
        for x in a:
            result += x
        return result

    @cuda.jit("void(CPointer(float32), int64, float32[:])")
    def kernel(p, n, out):
        out[0] = total(make(p, n))
        out[1] = total(make(p, (n,))[1:])
        out[2] = make(p, n)[-1]
        out[3] = len(make(p, -n)) + make(p, 0).size

    x, out = cuda.to_device(np.arange(6, dtype=np.float32)), cuda.to_device(np.zeros(4, np.float32))
    kernel[1, 1](address(x), 4, out)
    assert out.copy_to_host().tolist() == [6, 6, 3, 0]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float64", "complex64", "boolean"])
def test_what_a_voidptr_points_to_is_given(dtype):
    of = getattr(types, dtype)

    @cuda.jit((types.voidptr, types.voidptr, types.int64))
    def kernel(p, q, n):
        source, target = carray(p, (n, 2), dtype=of), carray(q, shape=(2, n), dtype=of)
        i = cuda.grid(1)
        if i < n:
            for k in range(2):
                target[k, i] = source[i, k]

    host = (np.arange(40) % 3).astype(types.as_dtype(of)).reshape(20, 2)
    x, out = cuda.to_device(host), cuda.to_device(np.zeros((2, 20), host.dtype))
    kernel[1, 32](address(x), address(out), 20)
    assert out.copy_to_host().tolist() == host.T.tolist()


def test_records_and_what_they_hold():
    @cuda.jit(types.void(types.CPointer(types.from_dtype(POINT)), types.voidptr, types.int64))
    def kernel(p, q, n):
        points, others = carray(p, n), farray(q, (2, n), POINT)
        i = cuda.grid(1)
        if i < n:
            points[i].x = points[i].n * 2
            points[i].v[1, 2] = i
            others[0, i] = points[i]
            others["n"][1, i] = points.n[i]

    n = 9
    host = np.zeros(n, POINT)
    host["n"] = np.arange(n) + 5
    x, out = cuda.to_device(host), cuda.to_device(np.zeros((n, 2), POINT))
    kernel[1, 32](address(x), address(out), n)
    host["x"], host["v"][:, 1, 2] = 2 * host["n"], np.arange(n)
    expected = np.zeros((n, 2), POINT)
    expected[:, 0], expected["n"][:, 1] = host, host["n"]
    assert (x.copy_to_host() == host).all()
    assert (out.copy_to_host() == expected).all()


def test_device_functions_take_and_give_them():
    @cuda.jit(device=True)
    def rows(p, n):
        return carray(p, (n, 3))

    @cuda.jit(device=True)
    def anything(p, n):
        return carray(p, n, np.int32)

    @cuda.jit("void(CPointer(int32), voidptr, int64)")
    def kernel(p, q, n):
        i = cuda.grid(1)
        if i < n:
            row = rows(p, n)[i]
            cuda.atomic.add(anything(q, n), (n - 1,), row.sum())
            cuda.atomic.add(rows(p, n), (i, 0), 1)

    x, out = cuda.to_device(np.arange(30, dtype=np.int32)), cuda.to_device(np.zeros(10, np.int32))
    kernel[1, 32](address(x), address(out), 10)
    assert out.copy_to_host().tolist() == [0] * 9 + [435]
    assert x.copy_to_host().tolist() == [i + (i % 3 == 0) for i in range(30)]


def test_indices_are_checked():
    @cuda.jit("void(CPointer(int32), int64, int64)", boundscheck=True)
    def kernel(p, n, i):
        carray(p, (n, 2))[i, 1] = 5

    x = cuda.to_device(np.zeros(8, np.int32))

    def launch(i):
        kernel[1, 1](address(x), 3, i)
        cuda.synchronize()

    launch(-1)
    assert x.copy_to_host().tolist() == [0, 0, 0, 0, 0, 5, 0, 0]
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        launch(3)


def rejected(body: str) -> str:
    """The message for a kernel of two pointers and an array with this body."""
    source = f"""
        from weft import carray, cuda, float32, int32

        def kernel(p, q, x, n):
            {body}
    """
    with pytest.raises(CompileError) as raised:
        cuda.jit("void(CPointer(int32), voidptr, int32[:], float32)")(module(source).kernel)
    return str(raised.value)


def test_what_is_refused():
    assert "`carray` takes a pointer, not array(int32, 1d, A)" in rejected("x[0] = carray(x, 3)[0]")
    assert "`carray` of voidptr needs a dtype" in rejected("x[0] = carray(q, 3)[0]")
    assert "the dtype float32 does not match CPointer(int32)" in rejected("x[0] = carray(p, 3, float32)[0]")
    assert "must be integers, not float32" in rejected("x[0] = carray(p, (3, n))[0, 0]")
    assert "takes a type as its dtype, not int64" in rejected("x[0] = carray(q, 3, 4)[0]")
    assert "has no parameter `order`" in rejected("x[0] = carray(p, 3, order=1)[0]")
    assert "`carray` takes 2 to 3 arguments" in rejected("x[0] = carray(p, 3, shape=1)[0]")
    assert "`carray` takes 2 to 3 arguments, not 1" in rejected("x[0] = carray(p)[0]")
    assert "voidptr cannot be indexed" in rejected("x[0] = q[0]")


def test_voidptr_is_a_type():
    assert str(types.voidptr) == "voidptr"
    assert pickle.loads(pickle.dumps(types.voidptr)) == types.voidptr != types.CPointer(types.uint8)
    assert pickle.loads(pickle.dumps(carray)) is carray


def test_on_the_host():
    memory = (ctypes.c_float * 6)(*range(6))
    pointer = ctypes.cast(memory, ctypes.POINTER(ctypes.c_float))
    a, b = carray(pointer, (2, 3)), farray(pointer, (2, 3), np.float32)
    assert (a.tolist(), b.tolist()) == ([[0, 1, 2], [3, 4, 5]], [[0, 2, 4], [1, 3, 5]])
    assert (a.dtype, a.flags.c_contiguous, b.flags.f_contiguous) == (np.float32, True, True)
    a[1, 2] = 50
    assert (memory[5], b[1, 2]) == (50, 50)
    void = ctypes.cast(memory, ctypes.c_void_p)
    assert carray(void, 3, weft.int32).view(np.float32).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="explicit dtype required"):
        carray(void, 3)
    with pytest.raises(TypeError, match="mismatching dtype 'int32'"):
        carray(pointer, 3, np.int32)
    with pytest.raises(TypeError, match="expected a ctypes pointer"):
        carray(5, 3)
