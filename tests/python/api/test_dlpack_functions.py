"""The C functions of device arrays (`__dlpack_c_exchange_api__`), called by `ctypes` as another library calls them."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from foreign_tensors import (
    CPU,
    CUDA,
    METAL,
    READ_ONLY,
    Array,
    DataType,
    Device,
    SetError,
    Table,
    Tensor,
    Versioned,
    capsule_pointer,
)
from weft import cuda


@pytest.fixture
def table() -> Any:
    capsule = cuda.DeviceNDArray.__dlpack_c_exchange_api__
    assert capsule is cuda.DeviceRecord.__dlpack_c_exchange_api__
    return Table.from_address(capsule_pointer(capsule, b"dlpack_exchange_api"))


def pointer_to(obj: Any) -> int:
    return id(obj)  # in CPython


def shape_and_strides(tensor: Any) -> tuple[list[int], list[int]]:
    return tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]


def exported(table: Any, array: Any) -> Any:
    out = ctypes.c_void_p()
    assert table.export(pointer_to(array), ctypes.byref(out)) == 0
    return Versioned.from_address(out.value)


def test_the_table(table: Any) -> None:
    assert (table.header.version.major, table.header.version.minor) == (1, 3)
    assert table.header.previous is None
    stream = ctypes.c_void_p(7)
    assert table.work_stream(CUDA, 0, ctypes.byref(stream)) == 0
    assert stream.value is None


def test_tensors_that_are_the_arrays_own(table: Any, device: str) -> None:
    array = cuda.to_device(np.arange(24, dtype=np.int16).reshape(4, 6))
    for view, strides in ((array, [6, 1]), (array.T, [1, 6]), (array[1:, ::2], [6, 2]), (array[::-1], [-6, 1])):
        for _ in range(2):
            tensor = Tensor()
            assert table.borrow(pointer_to(view), ctypes.byref(tensor)) == 0
            assert (tensor.data, tensor.byte_offset) == (view.address, 0)
            assert shape_and_strides(tensor) == (list(view.shape), strides)
            assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (0, 16, 1)
            assert (tensor.device.kind, tensor.device.id) == (CPU if device == "cpu" else CUDA, 0)


def test_structures_keep_the_array(table: Any) -> None:
    array = cuda.to_device(np.arange(3.0))
    gone = weakref.ref(array)
    structure = exported(table, array)
    assert shape_and_strides(structure.tensor) == ([3], [1])
    assert (structure.version.major, structure.flags) == (1, 0)
    del array
    gc.collect()
    assert gone() is not None
    structure.deleter(ctypes.addressof(structure))
    gc.collect()
    assert gone() is None


def test_structures_become_arrays(table: Any) -> None:
    array = cuda.to_device(np.arange(6.0).reshape(2, 3))
    structure = exported(table, array.T)
    out = ctypes.c_void_p()
    assert table.import_(ctypes.addressof(structure), ctypes.byref(out)) == 0
    back = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(back))  # our reference
    assert type(back) is cuda.DeviceNDArray
    assert (back.address, back.shape, back.strides) == (array.address, (3, 2), (8, 24))
    assert back.copy_to_host().tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.cpu
def test_structures_of_others_become_arrays(table: Any) -> None:
    array = Array(np.arange(3.0), flags=READ_ONLY)
    out = ctypes.c_void_p()
    assert table.import_(array.structure(), ctypes.byref(out)) == 0
    back = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(back))
    assert back.readonly
    assert back.address == array.base.ctypes.data
    # A tensor without flags does not express that.
    with pytest.raises(BufferError, match="the array is read-only"):
        table.borrow(pointer_to(back), ctypes.byref(Tensor()))
    assert exported(table, back).flags == READ_ONLY
    del back
    assert array.deleted == 0  # the exported structure was not released


def test_new_arrays(table: Any, device: str) -> None:
    def allocate(shape: list[int], dtype: tuple[int, int, int], kind: int) -> tuple[int, Any, list[Any]]:
        told = []
        set_error = SetError(lambda context, kind, message: told.append((context, kind.decode(), message.decode())))
        extents = (ctypes.c_int64 * len(shape))(*shape)
        prototype = Tensor(None, Device(kind, 0), len(shape), DataType(*dtype), extents, None, 0)
        out = ctypes.c_void_p()
        status = table.allocate(ctypes.byref(prototype), ctypes.byref(out), 77, set_error)
        return status, out.value, told

    own = CPU if device == "cpu" else CUDA
    status, address, told = allocate([3, 4], (2, 32, 1), own)
    assert (status, told) == (0, [])
    structure = Versioned.from_address(address)
    assert shape_and_strides(structure.tensor) == ([3, 4], [4, 1])
    assert structure.tensor.data % 64 == 0
    structure.deleter(address)
    for given, kind, message in (
        (([3], (2, 32, 1), METAL), "BufferError", "not 8"),
        (([3], (11, 8, 1), own), "TypeError", "float8_e4m3fnuz"),
        (([-3], (2, 32, 1), own), "ValueError", "negative dimension"),
    ):
        status, address, ((context, named, text),) = allocate(*given)
        assert (status, address, context, named) == (-1, None, 77, kind)
        assert message in text


def test_what_fails_leaves_an_exception(table: Any) -> None:
    out = ctypes.c_void_p()
    with pytest.raises(TypeError):
        table.export(pointer_to(out), ctypes.byref(out))
    with pytest.raises(TypeError, match="there is no object"):
        table.borrow(None, ctypes.byref(Tensor()))
    records = cuda.to_device(np.zeros(3, [("a", "i4")]))
    with pytest.raises(BufferError, match="DLPack does not support arrays of Record"):
        table.export(pointer_to(records), ctypes.byref(out))
    structure = Array(np.zeros(3), version=(2, 0))
    with pytest.raises(BufferError, match=r"it was exported by DLPack 2\.0"):
        table.import_(structure.structure(), ctypes.byref(out))
    assert structure.deleted == 1
