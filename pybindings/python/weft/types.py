"""Weft's types: what signatures and kernels name.

A scalar type is subscripted to an array type (``float32[:, ::1]``), called with types to a signature
(``void(float32[:], int32)``) and called with a number to a NumPy scalar. Names and strings are Numba's. All of them are
`Type`s; the classes here say of which kind one is (``isinstance(float32[:], Array)``) and make it of its parts.
"""

from __future__ import annotations

from weft._float8 import float8_e4m3fn, float8_e5m2
from weft._numbers import *  # noqa: F403
from weft._numbers import __all__ as _numbers
from weft._weft import Signature, Type, as_dtype, from_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

void = none = Type("void")
voidptr = Type.make_pointer()

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

    @staticmethod
    def _has(ty: Type) -> bool:
        """Whether a type is of the kind."""
        raise NotImplementedError


def _is_even(ty: Type) -> bool:
    """Whether the items of a tuple are of one type; without items they are not."""
    return len(ty) > 0 and all(item == ty.types[0] for item in ty.types)


def _is_int_enum(ty: Type) -> bool:
    import enum

    return ty.kind == "member" and issubclass(ty.instance_class, enum.IntEnum)


def _is_named(ty: Type) -> bool:
    return ty.kind == "object" and issubclass(ty.instance_class, tuple)


class Number(metaclass=_Kind):
    """Types of numbers, real and complex; a bool is none."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty in number_domain or ty == bfloat16  # noqa: F405


class Integer(metaclass=_Kind):
    """Types of integers."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty in integer_domain


class Float(metaclass=_Kind):
    """Types of floats."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty in real_domain or ty == bfloat16  # noqa: F405


class Complex(metaclass=_Kind):
    """Types of complex numbers."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty in complex_domain


class Boolean(metaclass=_Kind):
    """The type of bools."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty == boolean  # noqa: F405


class NoneType(metaclass=_Kind):
    """The type of ``None``, which is `void` as the return type of a signature."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "none"


class _OfStrings(_Kind):
    """The class of the kind of strings, which are no `Type`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, str)


class UnicodeType(metaclass=_OfStrings):
    """Strings that are known when a kernel is compiled: functions under ``overload`` get the string itself.

    An element of a NumPy array of strings, and a string that a launch passes, is of a `UnicodeCharSeq`.
    """


class Array(metaclass=_Kind):
    """Array type by its parts: ``Array(float32, 2, "C")`` is ``float32[:, ::1]``."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "array"

    def __new__(  # type: ignore[misc]  # what it makes is of the class by `isinstance` alone
        cls, dtype: Type, ndim: int, layout: str, readonly: bool = False, aligned: bool = True
    ) -> Type:
        """Make the type."""
        if not aligned:
            msg = "unaligned arrays are not supported in signatures"
            raise NotImplementedError(msg)
        return Type.make_array(dtype, ndim, layout, readonly)


class CPointer(metaclass=_Kind):
    """Type of C's pointers to elements of a type; a launch takes an address for one, as an int."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "pointer"

    def __new__(cls, dtype: Type) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return Type.make_pointer(dtype)


class BaseTuple(metaclass=_Kind):
    """Types of tuples, named ones too."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "tuple" or _is_named(ty)


class Tuple(metaclass=_Kind):
    """Type of a tuple with these element types; it is a `UniTuple` if they are all the same."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "tuple" and not _is_even(ty)

    def __new__(cls, types: Iterable[Type] = ()) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return Type.make_tuple(list(types))


class UniTuple(metaclass=_Kind):
    """Type of a tuple with ``count`` elements of one type."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "tuple" and _is_even(ty)

    def __new__(cls, dtype: Type, count: int) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return Type.make_tuple([dtype] * count)


class NamedTuple(metaclass=_Kind):
    """Type of the named tuples of a class, or of the objects of a dataclass, with fields of these types."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return _is_named(ty) and not _is_even(ty)

    def __new__(cls, types: Iterable[Type], class_: type) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return Type.make_object(class_, list(types))


class NamedUniTuple(metaclass=_Kind):
    """Type of the named tuples of a class whose fields have one type."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return _is_named(ty) and _is_even(ty)

    def __new__(cls, dtype: Type, count: int, class_: type) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return Type.make_object(class_, [dtype] * count)


class EnumMember(metaclass=_Kind):
    """Type of the members of an enum whose values are numbers of one type."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "member"

    def __new__(cls, class_: type, dtype: Type) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return Type.make_member(class_, dtype)


class IntEnumMember(EnumMember):
    """The same of an ``IntEnum``."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return _is_int_enum(ty)


class NPDatetime(metaclass=_Kind):
    """Type of NumPy's ``datetime64`` in a unit such as ``"ns"``; ``""`` is the generic unit."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "time" and ty.name.startswith("datetime64")

    def __new__(cls, unit: str = "") -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return from_dtype(f"datetime64[{unit}]" if unit else "datetime64")


class NPTimedelta(metaclass=_Kind):
    """Type of NumPy's ``timedelta64`` in a unit such as ``"ns"``; ``""`` is the generic unit."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "time" and ty.name.startswith("timedelta64")

    def __new__(cls, unit: str = "") -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return from_dtype(f"timedelta64[{unit}]" if unit else "timedelta64")


class CharSeq(metaclass=_Kind):
    """Type of NumPy's byte strings of a fixed number of bytes, such as ``S4``."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "chars" and as_dtype(ty).kind == "S"

    def __new__(cls, count: int) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return from_dtype(f"S{count}")


class UnicodeCharSeq(metaclass=_Kind):
    """Type of NumPy's strings of a fixed number of characters, such as ``U4``."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "chars" and as_dtype(ty).kind == "U"

    def __new__(cls, count: int) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        return from_dtype(f"U{count}")


class NestedArray(metaclass=_Kind):
    """Type of an array as a field of a record: ``NestedArray(float32, (2, 3))``."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "nested"

    def __new__(cls, dtype: Type, shape: Sequence[int]) -> Type:  # type: ignore[misc]  # see Array
        """Make the type."""
        import numpy as np

        return from_dtype(np.dtype((as_dtype(dtype), tuple(shape))))


class Record(metaclass=_Kind):
    """Type of a record by its fields, as ``("x", {"type": float32, "offset": 0})``, its bytes, and their alignment."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "record"

    def __new__(  # type: ignore[misc]  # see Array
        cls, fields: Iterable[tuple[str, dict[str, Any]]], size: int, aligned: bool
    ) -> Type:
        """Make the type."""
        import numpy as np

        parts = list(fields)
        layout: Any = {
            "names": [name for name, _ in parts],
            "formats": [as_dtype(field["type"]) for _, field in parts],
            "offsets": [field["offset"] for _, field in parts],
            "itemsize": size,
        }
        return from_dtype(np.dtype(layout, align=aligned))


class Optional(metaclass=_Kind):
    """Type of what is of a type or ``None``: arguments that are declared so take both."""

    @staticmethod
    def _has(ty: Type) -> bool:
        return ty.kind == "optional"

    def __new__(cls, type: Type) -> Type:  # type: ignore[misc]  # see Array; Numba's name
        """Make the type."""
        return Type.make_optional(type)


optional = Optional


class Literal:
    """The type of one value, which is known when a kernel is compiled."""

    literal_value: Any

    def __init__(self, value: Any) -> None:
        self.literal_value = value

    @property
    def literal_type(self) -> Type:
        """The type that the value has besides."""
        from weft._weft import typeof_value

        return typeof_value(self.literal_value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or type(other.literal_value) is not type(self.literal_value):
            return False
        return bool(other.literal_value == self.literal_value)

    def __hash__(self) -> int:
        return hash((type(self), self.literal_value))

    def __repr__(self) -> str:
        return f"Literal[{type(self.literal_value).__name__}]({self.literal_value})"

    @property
    def name(self) -> str:
        """Numba's name."""
        return str(self)


class IntegerLiteral(Literal):
    """That of an int."""


class BooleanLiteral(Literal):
    """That of a bool."""


class StringLiteral(Literal):
    """The literal type of a string."""


class Omitted:
    """Numba's type of an argument that is left out. Functions under ``overload`` get the default itself in weft."""

    value: Any

    def __init__(self, default: Any) -> None:
        self.value = default

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Omitted) and type(other.value) is type(self.value)
        return same and bool(other.value == self.value)  # type: ignore[attr-defined]  # it is one

    def __hash__(self) -> int:
        return hash((Omitted, type(self.value)))

    def __repr__(self) -> str:
        return f"omitted(default={self.value!r})"


class Dispatcher:
    """Numba's type of a jitted function. No function under ``overload`` gets one: kernels pass no functions to them."""

    dispatcher: Any

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dispatcher) and other.dispatcher is self.dispatcher

    def __hash__(self) -> int:
        return hash((Dispatcher, id(self.dispatcher)))

    def __repr__(self) -> str:
        return f"type({self.dispatcher!r})"


def unliteral(ty: Any) -> Any:
    """Give the type that the values of a type have besides.

    Parameters
    ----------
    ty
        A type, or a `Literal`.

    Returns
    -------
    Type
        `Literal.literal_type` of a `Literal`, and any other type as it is.

    Examples
    --------
    >>> weft.types.unliteral(weft.types.literal(3))
    int64
    """
    return ty.literal_type if isinstance(ty, Literal) else ty


def literal(value: bool | int | str) -> Literal:
    """Make the type of a value.

    Parameters
    ----------
    value
        An int, a bool or a str; or a literal type, which is returned.

    Returns
    -------
    Literal
        Of the class for it.

    Raises
    ------
    TypeError
        The value is of another class.

    Examples
    --------
    >>> weft.types.literal(3)
    Literal[int](3)
    """
    if isinstance(value, Literal):
        return value
    for of, made in ((bool, BooleanLiteral), (int, IntegerLiteral), (str, StringLiteral)):
        if isinstance(value, of):
            return made(value)
    msg = f"{value!r} cannot be used as a literal: only an int, a bool or a str can"
    raise TypeError(msg)


__all__ = [
    "Array",
    "BaseTuple",
    "Boolean",
    "BooleanLiteral",
    "CPointer",
    "CharSeq",
    "Complex",
    "Dispatcher",
    "EnumMember",
    "Float",
    "IntEnumMember",
    "Integer",
    "IntegerLiteral",
    "Literal",
    "NPDatetime",
    "NPTimedelta",
    "NamedTuple",
    "NamedUniTuple",
    "NestedArray",
    "NoneType",
    "Number",
    "Omitted",
    "Optional",
    "Record",
    "Signature",
    "StringLiteral",
    "Tuple",
    "Type",
    "UniTuple",
    "UnicodeCharSeq",
    "UnicodeType",
    "complex_domain",
    "float8_e4m3fn",
    "float8_e5m2",
    "integer_domain",
    "literal",
    "none",
    "number_domain",
    "optional",
    "real_domain",
    "signed_domain",
    "unliteral",
    "unsigned_domain",
    "void",
    "voidptr",
    *_numbers,
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Say which name is meant."""
        from weft._missing import missing

        raise missing(f"module {__name__!r}", f"{__name__}.{name}", __all__)
