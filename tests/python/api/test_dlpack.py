"""Arrays of other libraries by DLPack: as arguments, as device arrays, and exported device arrays.

`foreign_tensors.py` replaces the other library; NumPy, which also exports by DLPack, is the reference.
"""

from __future__ import annotations

import gc
import itertools
import mmap
from typing import Any

import host_memory
import numpy as np
import pytest
import weft
from foreign_tensors import (
    CPU,
    CUDA,
    CUDA_HOST,
    IS_COPIED,
    METAL,
    READ_ONLY,
    Array,
    exchanging,
    flags_of,
    name_of,
    new_capsule,
)
from weft import cuda


@cuda.jit
def add(x: Any, y: Any) -> None:
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] += y[i]


@cuda.jit
def fill(x: Any, value: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = value + i + 10 * j


@cuda.jit
def first(out: Any, x: Any) -> None:
    out[0] = x[0]


@cuda.jit
def first_float8(out: Any, x: Any) -> None:
    out[0] = np.float32(x[0])


KINDS = {
    "versioned": Array,
    "old": lambda *args, **given: Array(*args, old=True, **given),
    "borrowed": exchanging(),
    "owned": exchanging(borrows=False),
}


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


def test_an_argument_is_the_memory_itself(make: Any, device: str) -> None:
    base = np.arange(6.0)
    array = make(base)
    add[1, 32](array, np.ones(6))
    np.testing.assert_array_equal(base, np.arange(6.0) + 1)
    add[1, 32](np.zeros(6), array)
    add[1, 32](array, array)
    np.testing.assert_array_equal(base, 2 * (np.arange(6.0) + 1))
    if device == "cpu" and array.asked[-1] != {"borrow": True}:
        assert array.deleted == 4


def test_layouts(make: Any) -> None:
    whole = np.zeros((4, 6))
    for view in (whole, whole.T, whole[1:, ::2], whole[::-1, 1:3], whole[:, :0]):
        expected = 5 + np.arange(view.shape[0])[:, None] + 10.0 * np.arange(view.shape[1])
        fill[1, 1](make(view), 5)
        np.testing.assert_array_equal(view, expected)
    fill[1, 1](make(whole, strides=None), 7)
    assert whole[3, 5] == 60
    fill[1, 1](make(whole[1:], offset=48), 8)
    assert whole[3, 5] == 60
    assert whole[1, 0] == 8


def test_types(make: Any) -> None:
    for row in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?"):
        base = np.array([1, 0, 1]).astype(row)
        assert weft.typeof(make(base)) == weft.typeof(base)
        out = np.zeros(1, row)
        first[1, 1](out, make(base))
        assert out[0] == 1
    halves = np.array([0x3F80, 0], np.uint16)
    assert str(weft.typeof(make(halves, dtype=(4, 16, 1)))) == "array(bfloat16, 1d, C)"
    out = np.zeros(1)
    first[1, 1](out, make(halves, dtype=(4, 16, 1)))
    assert out[0] == 1
    for code, name in ((10, "float8_e4m3fn"), (12, "float8_e5m2")):
        bits = np.array([0x38 if code == 10 else 0x3C, 0], np.uint8)
        assert str(weft.typeof(make(bits, dtype=(code, 8, 1)))) == f"array({name}, 1d, C)"
        out = np.zeros(1, np.float32)
        first_float8[1, 1](out, make(bits, dtype=(code, 8, 1)))
        assert out[0] == 1
    fill[1, 1](make(np.zeros((1, 1))), 3)
    assert str(weft.typeof(make(np.zeros(())))) == "array(float64, 0d, C)"


def test_what_kernels_cannot_have(make: Any) -> None:
    x = np.zeros(4)
    wrong = [
        ({"dtype": (11, 8, 1)}, TypeError, "arrays of dtype float8_e4m3fnuz are not supported: floats of 8 bits are"),
        ({"dtype": (2, 128, 1)}, TypeError, "arrays of dtype float128 are not supported"),
        ({"dtype": (3, 64, 1)}, TypeError, "arrays of dtype opaque handle are not supported"),
        ({"dtype": (99, 8, 1)}, TypeError, "arrays of dtype 99 of DLPack with 8 bits are not supported"),
        ({"dtype": (2, 32, 2)}, TypeError, "each of its elements is a vector of 2 float32"),
        ({"address": 0}, BufferError, "it has elements, but no memory"),
        ({"strides": [1 << 62]}, ValueError, "the stride 4611686018427387904 is too large"),
        ({"device": (METAL, 0)}, weft.LaunchError, "in memory of DLPack's device type 8, which kernels cannot access"),
    ]
    for given, error, message in wrong:
        array = make(x, **given)
        with pytest.raises(error, match=r"^argument 2 \(`y`\) of kernel `add`: .*" + message):
            add[1, 1](np.zeros(4), array)
        gc.collect()
        assert array.deleted == sum("borrow" not in asked for asked in array.asked) - array.old
    with pytest.raises(TypeError, match="arrays of 8 dimensions are not supported"):
        add[1, 1](make(np.zeros((1,) * 8)), x)


@pytest.mark.cpu
def test_elements_at_loose_addresses(make: Any) -> None:
    base = np.zeros(33, np.uint8)[1:].view(np.float64)
    with pytest.raises(TypeError, match=r"argument 1 \(`x`\) of kernel `add`: its float64 elements are not aligned"):
        add[1, 1](make(base), base)


@pytest.mark.cpu
def test_memory_of_a_gpu(make: Any) -> None:
    with pytest.raises(weft.LaunchError, match=r"argument 1 .* in GPU memory, but kernels run on the CPU"):
        add[1, 1](make(np.zeros(3), device=(CUDA, 0)), np.zeros(3))
    with pytest.raises(weft.LaunchError, match="the array is in GPU memory, but kernels run on the CPU"):
        cuda.from_dlpack(make(np.zeros(3), device=(CUDA, 0)))


def test_what_is_asked() -> None:
    array = Array(np.zeros(3))
    add[1, 1](array, np.zeros(3))
    assert array.asked == [{"max_version": (1, 3)}]
    assert name_of(array.capsule) == "used_dltensor_versioned"
    old = Array(np.zeros(3), old=True)
    add[1, 1](old, np.zeros(3))
    assert old.asked == [{"max_version": (1, 3)}, {}]
    assert name_of(old.capsule) == "used_dltensor"
    borrowed = exchanging()(np.zeros(3))
    add[1, 1](borrowed, np.zeros(3))
    assert borrowed.asked == [{"borrow": True}]
    assert borrowed.streams == []


def test_what_is_read_only(device: str) -> None:
    for flags in (READ_ONLY, IS_COPIED):
        for kind in (Array, exchanging(borrows=False)):
            array = kind(np.ones(3), flags=flags)
            add[1, 1](np.zeros(3), array)
            with pytest.raises(weft.CompileError, match="E0215"):
                add[1, 1](array, np.ones(3))
    if device == "cpu":
        made = cuda.from_dlpack(Array(np.ones(3), flags=READ_ONLY))
        assert made.readonly
        with pytest.raises(BufferError, match="read-only"):
            made.__dlpack__()


class Frozen(mmap.mmap):
    """An exporter that predates DLPack 1.0, whose buffer is read-only, which its structure cannot express: like JAX."""

    array: Array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.device

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()


def test_what_an_old_structure_cannot_say() -> None:
    for access in (mmap.ACCESS_READ, mmap.ACCESS_WRITE):
        exporter = Frozen(-1, 24, access=access)
        exporter.array = Array(np.frombuffer(exporter), old=True)
        add[1, 1](np.zeros(3), exporter)
        if access == mmap.ACCESS_WRITE:
            add[1, 1](exporter, np.ones(3))
            assert exporter.array.base.tolist() == [1, 1, 1]
            continue
        with pytest.raises(weft.CompileError, match="E0215"):
            add[1, 1](exporter, np.ones(3))


def test_versions() -> None:
    newer = Array(np.zeros(3), version=(2, 0))
    with pytest.raises(BufferError, match=r"it was exported by DLPack 2\.0, but weft supports DLPack 1"):
        add[1, 1](newer, np.zeros(3))
    assert newer.deleted == 1
    # A function table of another version refers to one of a known version; otherwise `__dlpack__` is called.
    older = exchanging()
    array = exchanging(version=(2, 0), previous=older)(np.ones(3))
    add[1, 1](array, array)
    assert array.base.tolist() == [2, 2, 2]
    assert array.asked == [{"borrow": True}] * 2
    array = exchanging(version=(2, 0))(np.ones(3))
    add[1, 1](array, array)
    assert array.asked == [{"max_version": (1, 3)}] * 2


def test_functions_of_a_type_are_those_of_classes_derived_from_it() -> None:
    derived = type("Derived", (exchanging(),), {})
    array = derived(np.ones(3))
    add[1, 1](array, array)
    assert array.base.tolist() == [2, 2, 2]
    assert array.asked == [{"borrow": True}] * 2
    with pytest.raises(RuntimeError, match=r"argument 1 .*: the C function of its type failed without an exception"):
        add[1, 1](exchanging(fails=True)(np.zeros(3)), np.zeros(3))


def test_an_object_may_refuse_for_itself() -> None:
    class Refusing(exchanging()):
        requires_grad = False
        conjugate = False
        negative = False

        def is_conj(self) -> bool:
            return self.conjugate

        def is_neg(self) -> bool:
            return self.negative

        def __dlpack__(self, **asked: Any) -> Any:
            if self.requires_grad or self.conjugate:
                msg = "no"
                raise BufferError(msg)
            return super().__dlpack__(**asked)

    array = Refusing(np.ones(3))
    add[1, 1](array, array)
    for name, message in (("requires_grad", "no"), ("conjugate", "no"), ("negative", "the negative bit is set")):
        wrong = Refusing(np.ones(3, np.complex64))
        setattr(wrong, name, True)
        with pytest.raises(BufferError, match=rf"^argument 2 \(`y`\) of kernel `add`: .*{message}"):
            add[1, 1](np.zeros(3, np.complex64), wrong)
        with pytest.raises(BufferError, match=message):
            cuda.to_device(wrong)


def test_errors_of_the_exporter_are_its_own() -> None:
    class Wrong:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (CPU, 0)

        def __dlpack__(self, **_: Any) -> Any:
            return self.answer()

    for answer, error, message in (
        (lambda: 1 // 0, ZeroDivisionError, "division"),
        (lambda: 3, BufferError, "3 is not an unused DLPack capsule"),
        (lambda: new_capsule(8, b"something", None), BufferError, "is not an unused DLPack capsule"),
    ):
        wrong = Wrong()
        wrong.answer = answer
        with pytest.raises(error, match=rf"^argument 1 \(`x`\) of kernel `add`: .*{message}"):
            add[1, 1](wrong, np.zeros(3))
    with pytest.raises(TypeError, match=r"int has no `__dlpack__`.*`cuda\.to_device`"):
        cuda.from_dlpack(3)


def test_arguments_in_objects_and_hints(make: Any) -> None:
    @cuda.jit
    def of_pair(pair: Any) -> None:
        pair[0][0] = pair[1][0] + 1

    x, y = np.zeros(3), np.ones(3)
    of_pair[1, 1]((make(x), make(y)))
    assert x.tolist() == [2, 0, 0]
    add[1, 1](cuda.In(make(x)), make(y))
    assert x.tolist() == [2, 0, 0]
    add[1, 1](cuda.InOut(make(x)), make(y))
    assert x.tolist() == [3, 1, 1]


def test_memory_that_arguments_share(make: Any) -> None:
    """A tensor and host arrays over the same memory: a write to one is visible in all."""

    @cuda.jit
    def both(x: Any, y: Any) -> None:
        x[0] += 1
        y[1] += 10

    base = np.zeros(4)
    both[1, 1](make(base), base)
    assert base.tolist() == [1, 10, 0, 0]
    both[1, 1](base, make(base))
    assert base.tolist() == [2, 20, 0, 0]
    both[1, 1](make(base[1:]), make(base))
    assert base.tolist() == [2, 31, 0, 0]
    both[1, 1](make(base[::2]), base)
    assert base.tolist() == [3, 41, 0, 0]

    @cuda.jit
    def all_of(x: Any, y: Any, z: Any) -> None:
        x[0] += 1
        y[0] += 1
        z[0] += 1

    # The tensor in the middle overlaps both others, which are disjoint.
    for order in itertools.permutations((make(base[:2]), make(base[1:3]), base[2:])):
        base[:] = 0
        all_of[1, 1](*order)
        assert base.tolist() == [1, 1, 1, 0]


@pytest.mark.cpu
def test_a_device_array_of_a_tensor() -> None:
    base = np.arange(6.0).reshape(2, 3)
    array = Array(base.T)
    made = cuda.from_dlpack(array)
    assert (made.shape, made.strides, made.dtype) == ((3, 2), (8, 24), np.float64)
    assert made.address == base.ctypes.data
    made[0, 1] = 9
    assert base[1, 0] == 9
    row = made[0]
    del made
    gc.collect()
    assert array.deleted == 0
    assert row.copy_to_host().tolist() == [0, 9]
    del row
    gc.collect()
    assert array.deleted == 1
    assert cuda.from_dlpack(Array(base, device=(CUDA_HOST, 0))).address == base.ctypes.data
    assert cuda.as_cuda_array(array).address == base.ctypes.data
    capsule = array.__dlpack__(max_version=(1, 0))
    assert cuda.from_dlpack(capsule).copy_to_host().tolist() == base.T.tolist()
    with pytest.raises(BufferError, match="is not an unused DLPack capsule"):
        cuda.from_dlpack(capsule)
    own = cuda.device_array(3)
    assert cuda.from_dlpack(own) is own
    assert cuda.from_dlpack(np.ones(3)).copy_to_host().tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="doesn't implement the cuda array interface"):
        cuda.as_cuda_array(np.ones(3))


def test_copies_to_the_device() -> None:
    base = np.arange(6.0).reshape(2, 3)
    for array in (Array(base), Array(base.T), Array(base, old=True), exchanging()(base[:, ::2])):
        copy = cuda.to_device(array)
        np.testing.assert_array_equal(copy.copy_to_host(), array.base)
        copy[0, 0] = 5
        assert base[0, 0] == 0
    there = cuda.device_array((2, 3))
    cuda.to_device(Array(base), to=there)
    np.testing.assert_array_equal(there.copy_to_host(), base)


def test_ufuncs() -> None:
    @weft.vectorize
    def plus(x: Any, y: Any) -> Any:
        return x + y

    x, y = np.arange(4.0), np.ones(4)
    np.testing.assert_array_equal(plus(Array(x), y), x + y)
    np.testing.assert_array_equal(plus(exchanging()(x), Array(y)), x + y)
    np.testing.assert_array_equal(plus(cuda.to_device(x), Array(y)), x + y)
    out = np.zeros(4)
    plus(x, y, out=Array(out))
    np.testing.assert_array_equal(out, x + y)
    assert cuda.reduce(lambda a, b: a + b)(Array(x)) == 6


# --- Exported device arrays ---


@pytest.mark.cpu
def test_numpy_takes_device_arrays() -> None:
    array = cuda.to_device(np.arange(6.0).reshape(2, 3))
    assert array.__dlpack_device__() == (CPU, 0)
    host = np.from_dlpack(array)
    host[0, 1] = 9
    assert array[0, 1] == 9
    del array
    gc.collect()
    assert host.tolist() == [[0, 9, 2], [3, 4, 5]]
    array = cuda.to_device(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    for view in (array.T, array[:, ::2, 1:], array[::-1], array[0, 0, 0:0], array.reshape(24)):
        np.testing.assert_array_equal(np.from_dlpack(view), view.copy_to_host())
    for name in ("i1", "u4", "f2", "f8", "c8", "c16", "?"):
        there = cuda.to_device(np.ones(3, name))
        back = np.from_dlpack(there)
        assert back.dtype == np.dtype(name)
        assert back.tolist() == np.ones(3, name).tolist()


def test_capsules() -> None:
    array = cuda.to_device(np.arange(3.0))
    for version, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned")):
        capsule = array.__dlpack__(max_version=version)
        assert name_of(capsule) == name
        again = cuda.from_dlpack(capsule)
        assert name_of(capsule) == "used_" + name
        assert again.address == array.address
    assert flags_of(array.__dlpack__(max_version=(1, 3))) == 0
    copy = array.__dlpack__(max_version=(1, 3), copy=True)
    assert flags_of(copy) == IS_COPIED
    copied = cuda.from_dlpack(copy)
    assert copied.address != array.address
    assert copied.copy_to_host().tolist() == [0, 1, 2]
    assert array.__dlpack__(copy=False, dl_device=array.__dlpack_device__())


@pytest.mark.cpu
def test_exported_arrays_are_kept_and_given_back() -> None:
    import weakref

    array = cuda.to_device(np.arange(3.0))
    gone = weakref.ref(array)
    unused, used = array.__dlpack__(max_version=(1, 0)), array.__dlpack__()
    host = np.from_dlpack(Holder(used))
    del array
    gc.collect()
    assert gone() is not None
    del unused
    gc.collect()
    assert gone() is not None
    del host, used
    gc.collect()
    assert gone() is None


class Holder:
    """An exporter of one capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


def test_what_dlpack_cannot_tell(device: str) -> None:
    records = cuda.to_device(np.zeros(3, [("a", "i4"), ("b", "f8")]))
    with pytest.raises(BufferError, match=r"DLPack does not support arrays of Record"):
        records.__dlpack__()
    with pytest.raises(BufferError, match="strides that are not multiples of the element size, 8 bytes"):
        records["b"].__dlpack__()
    with pytest.raises(BufferError, match=r"DLPack does not support arrays of datetime64"):
        cuda.to_device(np.zeros(3, "M8[s]")).__dlpack__()
    array = cuda.device_array(3)
    with pytest.raises(BufferError, match=r"cannot be exported to \(8, 0\)"):
        array.__dlpack__(dl_device=(METAL, 0))
    if device == "cpu":
        with pytest.raises(ValueError, match="stream must be None, not 1"):
            array.__dlpack__(stream=1)
        assert array.__dlpack__(stream=-1)


@pytest.mark.cpu
def test_behind_a_large_tensor_there_is_something_to_read(make: Any) -> None:
    """Also for a tensor at the end of a mapping, which a kernel without a guard reads past."""

    @cuda.jit
    def without_a_guard(x: Any, y: Any) -> None:
        i = cuda.grid(1)
        y[i] = x[i]

    extent = 1 << 16
    with host_memory.at_an_end(extent) as (base, change):
        base[:] = np.arange(extent)
        # First nothing is mapped there. Then the memory is inaccessible, and the tensor is copied.
        for protect in (False, True):
            change(protect)
            y = np.zeros(extent + 1024)
            without_a_guard[extent // 1024 + 1, 1024](make(base), y)
            np.testing.assert_array_equal(y[:extent], base)
            add[1, 32](make(base), np.ones(extent))
            assert base[0] == 1
            base -= 1
