"""Weft's types: what signatures and kernels name.

A scalar type is subscripted to an array type (``float32[:, ::1]``), called with types to a signature
(``void(float32[:], int32)``) and called with a number to a NumPy scalar. Names and texts are Numba's.
"""

from __future__ import annotations

from weft._weft import Signature, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

void = none = Type("void")
boolean = bool_ = b1 = Type("boolean")
int8 = i1 = char = Type("int8")
int16 = i2 = short = Type("int16")
int32 = i4 = intc = Type("int32")
int64 = i8 = intp = int_ = ssize_t = longlong = long_ = Type("int64")
uint8 = u1 = uchar = Type("uint8")
uint16 = u2 = ushort = Type("uint16")
uint32 = u4 = uintc = Type("uint32")
uint64 = u8 = uintp = uint = size_t = ulonglong = ulong = Type("uint64")
float32 = f4 = float_ = Type("float32")
float64 = f8 = double = Type("float64")
complex64 = c8 = Type("complex64")
complex128 = c16 = Type("complex128")


def Array(dtype: Type, ndim: int, layout: str, readonly: bool = False, aligned: bool = True) -> Type:
    """Array type by its parts: ``Array(float32, 2, "C")`` is ``float32[:, ::1]``."""
    if not aligned:
        msg = "unaligned arrays are not supported in signatures"
        raise NotImplementedError(msg)
    return Type.make_array(dtype, ndim, layout, readonly)


def Tuple(types: Iterable[Type]) -> Type:
    """Type of a tuple with these element types."""
    return Type.make_tuple(list(types))


def UniTuple(dtype: Type, count: int) -> Type:
    """Type of a tuple with ``count`` elements of one type."""
    return Type.make_tuple([dtype] * count)


__all__ = [
    "Array",
    "Signature",
    "Tuple",
    "Type",
    "UniTuple",
    "b1",
    "bool_",
    "boolean",
    "c8",
    "c16",
    "char",
    "complex64",
    "complex128",
    "double",
    "f4",
    "f8",
    "float32",
    "float64",
    "float_",
    "i1",
    "i2",
    "i4",
    "i8",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "intp",
    "long_",
    "longlong",
    "none",
    "short",
    "size_t",
    "ssize_t",
    "u1",
    "u2",
    "u4",
    "u8",
    "uchar",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "ushort",
    "void",
]
