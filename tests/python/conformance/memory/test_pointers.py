"""C pointers: `types.CPointer(T)` in signatures; a launch passes an address."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from weft import CompileError, cuda, float32, types

INT = types.CPointer(types.int32)


def address(array) -> int:
    """The address of a device array."""
    return array.device_pointer


def test_the_type_is_one():
    assert str(INT) == "CPointer(int32)"
    assert types.CPointer(types.int32) == INT != types.CPointer(types.int64)
    assert INT.dtype == types.int32
    assert isinstance(INT, types.CPointer)
    assert not isinstance(types.int32, types.CPointer)
    assert pickle.loads(pickle.dumps(INT)) == INT
    with pytest.raises(TypeError, match="a pointer cannot point to array"):
        types.CPointer(types.int32[:])
    signature = types.void(INT, types.int32)
    assert str(signature) == "(CPointer(int32), int32) -> none"


@cuda.jit(types.void(INT, types.int32, INT, INT, types.uint32))
def axpy(r, a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        r[i] = a * x[i] + y[i]


def test_a_kernel_takes_addresses():
    n = 100
    x, y = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)[::-1].copy()
    dx, dy = cuda.to_device(x), cuda.to_device(y)
    dr = cuda.to_device(np.zeros(n + 1, np.int32))
    axpy[4, 32](address(dr), 5, np.uint64(address(dx)), np.int64(address(dy)), n)
    assert dr.copy_to_host().tolist() == [*(5 * x + y).tolist(), 0]
    # The same memory under two names, and part of it.
    axpy[4, 32](address(dx), 1, address(dx) + 4, address(dx), 1)
    assert dx.copy_to_host().tolist() == [1, *x[1:].tolist()]


@pytest.mark.parametrize("value", [1.0, True, None, "x", (1, 2), np.zeros(3, np.int32), 2j])
def test_what_is_no_integer_is_no_address(value):
    with pytest.raises(TypeError, match=r"declares CPointer\(int32\)"):
        axpy[1, 1](value, 5, 0, 0, 0)


TEXTS = ["void(CPointer({0}), CPointer({0}), int64)", "void(types.CPointer({0}), types.CPointer({0}), int64)"]
DTYPES = ["boolean", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"]


def neighbours(out, x, n):
    i = cuda.grid(1)
    if i < n:
        middle = x
        out[i] = middle[i]
        if i > 0:
            # Negative indices do not count from the end.
            out[i + n] = middle[i - n]
        out[-i - 1] = x[-i - 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", TEXTS)
def test_elements_of_every_type(text, dtype):
    kernel = cuda.jit(text.format(dtype))(neighbours)
    n = 40
    host = (np.arange(2 * n) % 90).astype(types.as_dtype(getattr(types, dtype)))
    x, out = cuda.to_device(host), cuda.to_device(np.zeros(3 * n, host.dtype))
    size = host.itemsize
    kernel[2, 32](address(out) + n * size, address(x) + n * size, n)
    got = out.copy_to_host()
    expected = np.concatenate([host[:n], host[n:], host[:1] * 0, host[1:n]])
    assert got.tolist() == expected.tolist()


@cuda.jit("int64(CPointer(int64), int64)", device=True)
def declared(p, i):
    return p[i] + p[i - 1]


@cuda.jit(device=True)
def further(p, q, i):
    chosen = p if i % 2 == 0 else q
    chosen[i] += 1
    return chosen


@cuda.jit("void(CPointer(int64), CPointer(int64), int64)")
def passed_on(p, q, n):
    i = cuda.grid(1)
    if 0 < i < n:
        r = further(p, q, i)
        pair = (r, q)
        r[i] += 10 * declared(pair[1], i + n)


def test_pointers_are_passed_on():
    n = 50
    p, q = cuda.to_device(np.zeros(n, np.int64)), cuda.to_device(np.arange(2 * n))
    passed_on[2, 32](address(p), address(q), n)
    i = np.arange(n)
    more = np.where(i > 0, 1 + 10 * (2 * i + 2 * n - 1), 0)
    assert p.copy_to_host().tolist() == np.where(i % 2 == 0, more, 0).tolist()
    assert q.copy_to_host()[:n].tolist() == np.where(i % 2 == 1, i + more, i).tolist()


@cuda.jit("void(CPointer(float32), CPointer(int32), CPointer(float32), int64)")
def hints_and_atomics(total, count, x, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(total, 0, cuda.ldcs(x, i))
        cuda.atomic.max(total, np.int32(1), cuda.ldcg(x, i))
        cuda.atomic.add(count, 1, 1)
        cuda.stcs(x, i, cuda.ldca(x, i) * float32(2))


def test_cache_hints_and_atomics():
    n = 70
    x = cuda.to_device(np.arange(n, dtype=np.float32))
    total, count = cuda.to_device(np.zeros(2, np.float32)), cuda.to_device(np.zeros(2, np.int32))
    hints_and_atomics[3, 32](address(total), address(count), address(x), n)
    assert total.copy_to_host().tolist() == [n * (n - 1) / 2, n - 1]
    assert count.copy_to_host().tolist() == [0, n]
    assert x.copy_to_host().tolist() == (2.0 * np.arange(n)).tolist()


POINT = np.dtype([("x", np.float32), ("n", np.int64)])


@cuda.jit((types.CPointer(types.from_dtype(POINT)), types.int64))
def records(p, n):
    i = cuda.grid(1)
    if i < n:
        p[i].x = p[i].n * 2
        p[i + n] = p[i]


def test_records_behind_a_pointer():
    n = 9
    points = np.zeros(2 * n, POINT)
    points["n"] = np.arange(2 * n)
    device = cuda.to_device(points)
    records[1, 32](address(device), n)
    points["x"][:n] = 2 * np.arange(n)
    points[n:] = points[:n]
    assert device.copy_to_host().tolist() == points.tolist()


def test_a_tuple_of_addresses():
    @cuda.jit(types.void(types.Tuple((INT, types.float32)), INT))
    def kernel(pair, out):
        out[0] = pair[0][1] + pair[1]

    x, out = cuda.to_device(np.array([3, 4], np.int32)), cuda.to_device(np.zeros(1, np.int32))
    kernel[1, 1]((address(x), 0.5), address(out))
    assert out.copy_to_host().tolist() == [4]


def rejected(body: str) -> str:
    """The error message for a kernel with a pointer and this body."""
    from harness import module

    source = f"""
        from weft import cuda

        def kernel(p):
            {body}
    """
    with pytest.raises(CompileError) as raised:
        cuda.jit("void(CPointer(int32))")(module(source).kernel)
    return str(raised.value)


def test_what_a_pointer_is_not():
    assert "a pointer takes one integer as its index" in rejected("p[0:2] = 1")
    assert "a pointer takes one integer as its index" in rejected("p[0, 1] = 1")
    assert "CPointer(int32)" in rejected("p[0] = p")
    assert "CPointer(int32)" in rejected("p[0] = p + 1")
    assert "CPointer(int32)" in rejected("p[0] = len(p)")
    assert "CPointer(int32)" in rejected("p[0] = p.shape[0]")


def test_a_device_function_takes_no_integer_for_a_pointer():
    @cuda.jit
    def kernel(x):
        x[0] = declared(x[0], 1)

    with pytest.raises(CompileError, match="no signature of `declared` takes"):
        kernel[1, 1](np.zeros(2, np.int64))
