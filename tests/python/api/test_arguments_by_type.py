"""The type of an argument determines how it is passed. Each type is inspected only once."""

from __future__ import annotations

import dataclasses
import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def store(out: Any, a: Any) -> None:
    out[0] = a


@cuda.jit
def store_first(out: Any, a: Any) -> None:
    out[0] = a[0]


def passed(kernel: Any, a: Any) -> complex:
    out = np.zeros(1, np.complex128)
    kernel[1, 1](out, a)
    return complex(out[0])


def made(number: int) -> tuple[Any, Any, complex]:
    """Return a kernel, an object of a new class, and the values that the kernel stores."""
    kind = number % 5
    if kind == 0:
        return store, type("Whole", (int,), {})(number), number
    if kind == 1:
        return store, type("Real", (float,), {})(number + 0.5), number + 0.5
    if kind == 2:
        return store, type("Pair", (complex,), {})(number, 1), complex(number, 1)
    if kind == 3:
        return store_first, type("Row", (tuple,), {})((number + 0.25, 1)), number + 0.25
    return store_first, np.array([number], np.int16).view(type("Array", (np.ndarray,), {})), number


def test_classes_that_come_and_go() -> None:
    """A class may have the address of a deleted one."""
    for number in range(3000):
        kernel, value, expected = made(number)
        assert passed(kernel, value) == expected
        del value
        if number % 500 == 0:
            gc.collect()


def test_threads_with_the_same_classes() -> None:
    things = [made(number) for number in range(200)]

    def one(start: int) -> None:
        for place in range(200):
            kernel, value, expected = things[(start + place * 7) % 200]
            assert passed(kernel, value) == expected

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(8)))


def test_scalars_of_numpy_and_classes_of_them() -> None:
    for number in (np.float64(2.5), np.float32(2.5), np.complex64(2.5 + 1j), np.int8(-3), np.uint64(2**63)):
        assert passed(store, number) == complex(number)
        derived = type("Derived", (type(number),), {})
        with pytest.raises(TypeError, match="NumPy scalars of type Derived are not supported"):
            passed(store, derived(1))
    assert passed(store, np.bool_(1)) == 1
    for scalar in (np.longdouble(1), np.void(b"abc")):
        with pytest.raises(TypeError, match=f"NumPy scalars of type {type(scalar).__name__} are not supported"):
            passed(store, scalar)


def extremes(dtype: Any) -> list[Any]:
    """Scalars of a NumPy dtype, with characteristic bit patterns."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [dtype.type(number) for number in (info.min, info.max, 0, 1, 85)]
    if dtype.kind == "b":
        return [np.bool_(0), np.bool_(1)]
    parts = np.finfo(dtype)
    reals = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, parts.max, parts.tiny, parts.smallest_subnormal]
    if dtype.kind == "f":
        return [dtype.type(real) for real in reals]
    return [dtype.type(complex(real, imag)) for real, imag in zip(reals, reals[::-1], strict=True)]


@pytest.mark.parametrize("name", "? b h i l q B H I L Q e f d F D".split())
def test_bits_of_scalars_of_numpy(name: str) -> None:
    dtype = np.dtype(name)
    for scalar in extremes(dtype):
        out = np.zeros(1, dtype)
        store[1, 1](out, scalar)
        assert out.tobytes() == scalar.tobytes(), scalar
    # A number of a wider type is converted from all of its bits.
    for scalar in extremes(dtype) if dtype.kind in "iub" else ():
        wide = np.zeros(1, np.uint64 if dtype.kind == "u" else np.int64)
        store[1, 1](wide, scalar)
        assert wide[0] == int(scalar)


@cuda.jit
def store_all(out: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> None:
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


class Whole(int):
    pass


class Real(float):
    pass


def test_many_numbers_of_one_type_and_of_several() -> None:
    rows = (
        (1, 2, 3, 4, 5, 6, 7, 8),
        (1.5, 2.5, -3.5, 4.0, 5.0, 6.0, 7.0, np.inf),
        (-1, 2**62, -(2**62), 0, 1 << 40, 6, 7, -(2**63)),
        (1, 2, 3, 2**63, 5, 6, 2**64 - 1, 8),
        (1, 2.0, np.float32(3), np.int8(-4), True, Whole(6), Real(7.5), np.float64(8)),
        (Whole(1), Whole(2), 3, 4, Real(5.5), Real(6.5), 7.5, 8.5),
        (np.float32(0.1),) * 4 + (np.float64(0.1),) * 4,
        (np.uint8(255),) * 3 + (np.int8(-1),) * 3 + (np.uint64(2**64 - 1), np.int64(-(2**63))),
        (False, True, np.bool_(0), np.bool_(1), False, True, np.bool_(0), np.bool_(1)),
    )
    for numbers in rows * 2:
        out = np.zeros(8)
        store_all[1, 1](out, *numbers)
        assert out.tolist() == [float(number) for number in numbers]
    for wrong in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match=r"argument 5 \(`d`\) of kernel `store_all`: Int value is too large"):
            store_all[1, 1](out, 1, 2, 3, wrong, 5, 6, 7, 8)


@dataclasses.dataclass
class Point:
    x: float


def test_a_class_says_what_its_objects_are_and_an_object_what_it_holds() -> None:
    @cuda.jit
    def x_of(out: Any, a: Any) -> None:
        out[0] = a.x

    assert passed(x_of, Point(1.5)) == 1.5
    assert passed(x_of, Point(2)) == 2  # the same class with an int field: another kernel

    class Holder:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __cuda_array_interface__(self) -> Any:
            return self.array.__cuda_array_interface__

    for array in (np.array([3.5]), np.array([[2, 4]], np.int32)[0]):
        assert passed(store_first, Holder(cuda.to_device(array))) == array[0]
    with pytest.raises(TypeError, match="Other cannot be passed to a kernel"):
        passed(store, type("Other", (), {})())
