"""A replacement for another library's arrays: DLPack's structures by `ctypes`, over NumPy's memory or any address.

An `Array` exports by `__dlpack__`. A class that `exchanging` creates also has the C functions of DLPack 1.3, which a
launch prefers. An array's `asked` records the calls of its methods, and `deleted` counts how often its structure was
released.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

CPU, CUDA, CUDA_HOST, METAL, CUDA_MANAGED = 1, 2, 3, 8, 13
READ_ONLY, IS_COPIED = 1, 2

# `DLDataTypeCode` by NumPy's kinds.
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Device(ctypes.Structure):
    """`DLDevice`."""

    _fields_ = (("kind", c_int32), ("id", c_int32))


class DataType(ctypes.Structure):
    """`DLDataType`."""

    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class Old(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = (("tensor", Tensor), ("context", c_void_p), ("deleter", Deleter))


class Version(ctypes.Structure):
    """`DLPackVersion`."""

    _fields_ = (("major", c_uint32), ("minor", c_uint32))


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("version", Version),
        ("context", c_void_p),
        ("deleter", Deleter),
        ("flags", c_uint64),
        ("tensor", Tensor),
    )


SetError = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
Allocate = ctypes.PYFUNCTYPE(c_int, ctypes.POINTER(Tensor), ctypes.POINTER(c_void_p), c_void_p, SetError)
Export = ctypes.PYFUNCTYPE(c_int, c_void_p, ctypes.POINTER(c_void_p))
Import = ctypes.PYFUNCTYPE(c_int, c_void_p, ctypes.POINTER(c_void_p))
Borrow = ctypes.PYFUNCTYPE(c_int, c_void_p, ctypes.POINTER(Tensor))
WorkStream = ctypes.PYFUNCTYPE(c_int, c_int, c_int32, ctypes.POINTER(c_void_p))


class Header(ctypes.Structure):
    """`DLPackExchangeAPIHeader`."""

    _fields_ = (("version", Version), ("previous", c_void_p))


class Table(ctypes.Structure):
    """`DLPackExchangeAPI`."""

    _fields_ = (
        ("header", Header),
        ("allocate", Allocate),
        ("export", Export),
        ("import_", Import),
        ("borrow", Borrow),
        ("work_stream", WorkStream),
    )


def _function(name: str, result: Any, *args: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, args
    return function


new_capsule = _function("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
capsule_name = _function("PyCapsule_GetName", c_char_p, py_object)
capsule_pointer = _function("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)

# Structures and names of capsules are never freed, because their last use is unknown.
_KEPT: list[Any] = []


def name_of(capsule: Any) -> str:
    """The name of a capsule."""
    return str(capsule_name(capsule).decode())


def flags_of(capsule: Any) -> int:
    """The flags of a capsule with a version."""
    return int(Versioned.from_address(capsule_pointer(capsule, b"dltensor_versioned")).flags)


class Array:
    """An array of another library.

    Parameters
    ----------
    base
        A NumPy array. It shares the memory of that array unless `address` is given.
    device
        The result of `__dlpack_device__`.
    address
        The address of the first element.
    dtype
        `(code, bits, lanes)` instead of the base's.
    old
        It predates DLPack 1.0, and does not accept `max_version`.
    version
        The version of its structures.
    flags, offset, strides
        Those fields; strides may be None, for NULL.
    """

    def __init__(
        self,
        base: Any,
        device: tuple[int, int] = (CPU, 0),
        address: int | None = None,
        dtype: tuple[int, int, int] | None = None,
        old: bool = False,
        version: tuple[int, int] = (1, 1),
        flags: int = 0,
        offset: int = 0,
        **given: Any,
    ) -> None:
        self.base, self.device, self.old, self.version, self.flags = base, device, old, version, flags
        item = base.dtype.itemsize
        self.shape = (c_int64 * base.ndim)(*base.shape)
        steps = given.get("strides", [stride // item for stride in base.strides])
        self.strides = None if steps is None else (c_int64 * base.ndim)(*steps)
        self.asked: list[dict[str, Any]] = []
        self.deleted = 0
        self.capsule: Any = None
        self.raw = Tensor(
            (base.__array_interface__["data"][0] if address is None else address) - offset,
            Device(*device),
            base.ndim,
            DataType(*(dtype or (CODES[base.dtype.kind], 8 * item, 1))),
            self.shape,
            self.strides,
            offset,
        )

    def structure(self) -> int:
        """Make the structure. It is never freed; its deleter only counts."""

        @Deleter
        def deleter(pointer: int) -> None:
            assert pointer == ctypes.addressof(made)
            self.deleted += 1

        made: Any = Old(self.raw, None, deleter)
        if not self.old:
            made = Versioned(Version(*self.version), None, deleter, self.flags, self.raw)
        _KEPT.extend((made, deleter, self.shape, self.strides))
        return ctypes.addressof(made)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked.append(asked)
        if self.old and "max_version" in asked:
            msg = "__dlpack__() got an unexpected keyword argument 'max_version'"
            raise TypeError(msg)
        self.capsule = new_capsule(self.structure(), b"dltensor" if self.old else b"dltensor_versioned", None)
        return self.capsule


def exchanging(
    borrows: bool = True, stream: int = 0, version: tuple[int, int] = (1, 3), previous: Any = None, fails: bool = False
) -> Any:
    """Make a class of arrays with the C functions; a class of a higher version may refer to that of an older one."""

    @Borrow
    def borrow(pointer: int, out: Any) -> int:
        array = ctypes.cast(pointer, py_object).value
        array.asked.append({"borrow": True})
        out[0] = array.raw
        return -1 if fails else 0

    @Export
    def export(pointer: int, out: Any) -> int:
        array = ctypes.cast(pointer, py_object).value
        array.asked.append({"export": True})
        out[0] = array.structure()
        return 0

    @WorkStream
    def work_stream(kind: int, number: int, out: Any) -> int:
        asked_streams.append((kind, number))
        out[0] = stream or None
        return 0

    asked_streams: list[tuple[int, int]] = []
    older = ctypes.addressof(previous.table) if previous else None
    header = Header(Version(*version), older)
    made = Table(header, Allocate(), export, Import(), borrow if borrows else Borrow(), work_stream)
    _KEPT.extend((made, borrow, export, work_stream))
    capsule = new_capsule(ctypes.addressof(made), b"dlpack_exchange_api", None)

    class Exchanging(Array):
        __dlpack_c_exchange_api__ = capsule
        table = made
        streams = asked_streams

    return Exchanging
