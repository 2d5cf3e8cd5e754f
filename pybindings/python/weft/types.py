"""Weft's types: what signatures and kernels name.

A scalar type is subscripted to an array type (``float32[:, ::1]``), called with types to a signature
(``void(float32[:], int32)``) and called with a number to a NumPy scalar. Names and texts are Numba's.
"""

from __future__ import annotations

from weft._numbers import *  # noqa: F403
from weft._numbers import __all__ as _numbers
from weft._weft import Signature, Type, as_dtype, from_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

void = none = Type("void")

signed_domain = frozenset({int8, int16, int32, int64})  # noqa: F405
unsigned_domain = frozenset({uint8, uint16, uint32, uint64})  # noqa: F405
integer_domain = signed_domain | unsigned_domain
real_domain = frozenset({float16, float32, float64})  # noqa: F405
complex_domain = frozenset({complex64, complex128})  # noqa: F405
number_domain = integer_domain | real_domain | complex_domain


class _Kind(type):
    """The class of a kind of types: ``isinstance(float32[:], Array)``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Type) and cls._has(instance)

    def _has(cls, ty: Type) -> bool:
        raise NotImplementedError


class _ArrayKind(_Kind):
    def _has(cls, ty: Type) -> bool:
        return hasattr(ty, "layout")


class Array(metaclass=_ArrayKind):
    """Array type by its parts: ``Array(float32, 2, "C")`` is ``float32[:, ::1]``."""

    def __new__(  # type: ignore[misc]  # what it makes is of the class by `isinstance` alone
        cls, dtype: Type, ndim: int, layout: str, readonly: bool = False, aligned: bool = True
    ) -> Type:
        """Make the type."""
        if not aligned:
            msg = "unaligned arrays are not supported in signatures"
            raise NotImplementedError(msg)
        return Type.make_array(dtype, ndim, layout, readonly)


class _PointerKind(_Kind):
    def _has(cls, ty: Type) -> bool:
        return ty.is_pointer


class CPointer(metaclass=_PointerKind):
    """Type of C's pointers to elements of a type; a launch takes an address for one, as an int."""

    def __new__(cls, dtype: Type) -> Type:  # type: ignore[misc]  # as `Array`
        """Make the type."""
        return Type.make_pointer(dtype)


def Tuple(types: Iterable[Type]) -> Type:
    """Type of a tuple with these element types."""
    return Type.make_tuple(list(types))


def UniTuple(dtype: Type, count: int) -> Type:
    """Type of a tuple with ``count`` elements of one type."""
    return Type.make_tuple([dtype] * count)


def NamedTuple(types: Iterable[Type], cls: type) -> Type:
    """Type of the named tuples of a class, or of the objects of a dataclass, with fields of these types."""
    return Type.make_object(cls, list(types))


def NamedUniTuple(dtype: Type, count: int, cls: type) -> Type:
    """Type of the named tuples of a class whose fields have one type."""
    return Type.make_object(cls, [dtype] * count)


def EnumMember(cls: type, dtype: Type) -> Type:
    """Type of the members of an enum whose values are numbers of one type."""
    return Type.make_member(cls, dtype)


IntEnumMember = EnumMember


def NPDatetime(unit: str) -> Type:
    """Type of NumPy's ``datetime64`` in a unit such as ``"ns"``; in none yet for ``""``."""
    return from_dtype(f"datetime64[{unit}]" if unit else "datetime64")


def NPTimedelta(unit: str) -> Type:
    """Type of NumPy's ``timedelta64`` in a unit such as ``"ns"``; in none yet for ``""``."""
    return from_dtype(f"timedelta64[{unit}]" if unit else "timedelta64")


def CharSeq(count: int) -> Type:
    """Type of the elements of NumPy's arrays of so many bytes, ``S4``."""
    return from_dtype(f"S{count}")


def UnicodeCharSeq(count: int) -> Type:
    """Type of the elements of NumPy's arrays of so many letters, ``U4``."""
    return from_dtype(f"U{count}")


def NestedArray(dtype: Type, shape: Sequence[int]) -> Type:
    """Type of an array as a field of a record: ``NestedArray(float32, (2, 3))``."""
    import numpy as np

    return from_dtype(np.dtype((as_dtype(dtype), tuple(shape))))


def Record(fields: Iterable[tuple[str, dict[str, Any]]], size: int, aligned: bool) -> Type:
    """Type of a record by its fields, as ``("x", {"type": float32, "offset": 0})``, its bytes, and their alignment."""
    import numpy as np

    parts = list(fields)
    layout: Any = {
        "names": [name for name, _ in parts],
        "formats": [as_dtype(field["type"]) for _, field in parts],
        "offsets": [field["offset"] for _, field in parts],
        "itemsize": size,
    }
    return from_dtype(np.dtype(layout, align=aligned))


__all__ = [
    "Array",
    "CPointer",
    "CharSeq",
    "EnumMember",
    "IntEnumMember",
    "NPDatetime",
    "NPTimedelta",
    "NamedTuple",
    "NamedUniTuple",
    "NestedArray",
    "Record",
    "Signature",
    "Tuple",
    "Type",
    "UniTuple",
    "UnicodeCharSeq",
    "complex_domain",
    "integer_domain",
    "none",
    "number_domain",
    "real_domain",
    "signed_domain",
    "unsigned_domain",
    "void",
    *_numbers,
]
