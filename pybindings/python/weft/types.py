"""Weft's types: what signatures and kernels name.

A scalar type is subscripted to an array type (``float32[:, ::1]``), called with types to a signature
(``void(float32[:], int32)``) and called with a number to a NumPy scalar. Names and texts are Numba's.
"""

from __future__ import annotations

from weft._numbers import *  # noqa: F403
from weft._numbers import __all__ as _numbers
from weft._weft import Signature, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

void = none = Type("void")


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


__all__ = ["Array", "Signature", "Tuple", "Type", "UniTuple", "none", "void", *_numbers]
