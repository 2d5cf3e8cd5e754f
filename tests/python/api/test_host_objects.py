"""Host arrays of other libraries as arguments: objects with a buffer, and objects with NumPy's array interface.

Also the same memory twice in one launch: a write through one argument is visible through the others, and all writes are
copied back.
"""

from __future__ import annotations

import array
import ctypes
import itertools
import mmap
from typing import Any

import numpy as np
import pytest
import weft
from weft import cuda


@cuda.jit
def add_one(x: Any) -> None:
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] += 1


@cuda.jit
def total(x: Any, out: Any) -> None:
    s = 0
    for i in range(x.size):
        s += x[i]
    out[0] = s


class Interface:
    """An object with NumPy's array interface, and nothing else."""

    def __init__(self, base: Any, **changed: Any) -> None:
        self.base = base
        self.__array_interface__ = {**base.__array_interface__, **changed}


def writable() -> dict[str, Any]:
    mapped = mmap.mmap(-1, 16)
    mapped[:3] = bytes([1, 2, 3])
    return {
        "array": array.array("d", [1, 2, 3]),
        "array of int": array.array("i", [1, 2, 3]),
        "bytearray": bytearray([1, 2, 3]),
        "memoryview": memoryview(np.arange(1.0, 4)),
        "memoryview with gaps": memoryview(np.arange(1, 7))[::2],
        "ctypes": (ctypes.c_int16 * 3)(1, 2, 3),
        "ctypes double": (ctypes.c_double * 3)(1, 2, 3),
        "mmap": mapped,
        "interface": Interface(np.arange(1.0, 4)),
        "interface with gaps": Interface(np.arange(1, 12)[::3]),
    }


def elements(value: Any) -> Any:
    return np.asarray(value if not isinstance(value, mmap.mmap) else memoryview(value)).copy()


@pytest.mark.parametrize("name", writable())
def test_what_a_kernel_writes_is_there(name: str) -> None:
    value = writable()[name]
    before = elements(value)
    out = np.zeros(1)
    total[1, 1](value, out)
    assert out[0] == before.sum()
    add_one[1, 32](value)
    np.testing.assert_array_equal(elements(value), before + 1)
    add_one[1, 32](value)
    np.testing.assert_array_equal(elements(value), before + 2)
    add_one[1, 32](cuda.In(value))
    np.testing.assert_array_equal(elements(value), before + 2)


def test_types() -> None:
    assert str(weft.typeof(array.array("f", [1]))) == "array(float32, 1d, C)"
    assert str(weft.typeof(((ctypes.c_uint8 * 3) * 2)())) == "array(uint8, 2d, C)"
    assert str(weft.typeof(memoryview(np.zeros((4, 3), "c8"))[::2])) == "array(complex64, 2d, A)"
    assert str(weft.typeof(Interface(np.zeros((2, 3), order="F")))) == "array(float64, 2d, F)"
    assert str(weft.typeof(memoryview(b"abc"))) == "Array(uint8, 1d, C)"  # with a capital A: read-only


def test_what_is_read_only() -> None:
    frozen = np.ones(3)
    frozen.flags.writeable = False
    read_only = mmap.mmap(-1, 16, access=mmap.ACCESS_READ)
    for value in (memoryview(b"abc"), memoryview(frozen), Interface(frozen), read_only):
        out = np.zeros(1)
        total[1, 1](value, out)
        with pytest.raises(weft.CompileError, match="E0215"):
            add_one[1, 1](value)


def test_what_is_no_array() -> None:
    class Wrong:
        __array_interface__ = 3

    for value in (object(), {1: 2}, [1, 2]):
        with pytest.raises(TypeError, match=r"argument 1 \(`x`\) of kernel `add_one`: an? .* cannot be passed"):
            add_one[1, 1](value)
    with pytest.raises(ValueError, match=r"argument 1 \(`x`\) of kernel `add_one`: "):
        add_one[1, 1](Wrong())
    with pytest.raises(TypeError, match=r"argument 1 \(`x`\) of kernel `add_one`: arrays of this format"):
        add_one[1, 1]((ctypes.c_int.__ctype_be__ * 3)())


# --- The same memory twice ---


@cuda.jit
def shifted(x: Any, y: Any) -> None:
    """Writes x, and stores the elements of y that it reads afterwards."""
    for i in range(x.size):
        x[i] += 1
        y[i] = 10 * y[i]


@cuda.jit
def of_matrices(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += 1
            y[i, j] = 10 * y[i, j]


def one_after_the_other(x: Any, y: Any) -> None:
    for index in np.ndindex(x.shape):
        x[index] += 1
        y[index] *= 10


VIEWS = {
    "the same": lambda a: (a, a),
    "shifted": lambda a: (a[:-1], a[1:]),
    "shifted back": lambda a: (a[1:], a[:-1]),
    "backwards": lambda a: (a, a[::-1]),
    "in steps": lambda a: (a[::2], a[1::2]),
    "in steps that meet": lambda a: (a[::2], a[: (a.size + 1) // 2]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("size", [1, 2, 9, 40_000])
def test_views_of_one_array(name: str, size: int) -> None:
    a, expected = np.arange(1.0, size + 1), np.arange(1.0, size + 1)
    x, y = VIEWS[name](expected)
    if x.shape != y.shape:
        x, y = x[: y.size], y[: x.size]
    one_after_the_other(x, y)
    x, y = VIEWS[name](a)
    if x.shape != y.shape:
        x, y = x[: y.size], y[: x.size]
    shifted[1, 1](x, y)
    np.testing.assert_array_equal(a, expected)


def test_a_matrix_and_its_transpose() -> None:
    for make in (lambda a: (a, a.T), lambda a: (a[1:, :3], a.T[:3, 1:]), lambda a: (a[:, ::2], a[::-1, 1::2])):
        a, expected = np.arange(1.0, 17).reshape(4, 4), np.arange(1.0, 17).reshape(4, 4)
        one_after_the_other(*make(expected))
        of_matrices[1, 1](*make(a))
        np.testing.assert_array_equal(a, expected)


def test_objects_over_the_same_memory() -> None:
    """All pairs of several kinds of arrays over the same memory."""

    def kinds() -> Any:
        base = bytearray(np.arange(1.0, 7).tobytes())
        whole = np.frombuffer(base)
        return whole, [whole, memoryview(base).cast("d"), Interface(whole), (ctypes.c_double * 6).from_buffer(base)]

    expected = np.arange(1.0, 7)
    one_after_the_other(expected, expected)
    for first, second in itertools.product(range(4), repeat=2):
        whole, views = kinds()
        shifted[1, 1](views[first], views[second])
        np.testing.assert_array_equal(whole, expected)


def test_three_arguments_in_one_tuple() -> None:
    @cuda.jit
    def in_turn(arrays: Any, last: Any) -> None:
        for i in range(last.size):
            arrays[0][i] += 1
            arrays[1][i] += 1
            last[i] += 1

    a, expected = np.zeros(8), np.zeros(8)
    for view in (expected[:4], expected[2:6], expected[3:7]):
        view += 1
    in_turn[1, 1]((a[:4], a[2:6]), a[3:7])
    np.testing.assert_array_equal(a, expected)
