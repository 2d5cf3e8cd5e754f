"""Numbers of kernels that CPython runs: NumPy's scalars with the results of Numba's rules.

`int32`, `float32` and the others are subclasses of NumPy's scalars of the same names, so that they print, index and
are stored as these are; only what operators give is another: integers become 64 bits wide and wrap, nothing divides
by zero. A truth is Python's `bool`, as no class can be made of NumPy's. Python's own numbers, which literals are,
count as `int64` and `float64` beside them. docs/language/arithmetic.md has the rules.
"""

from __future__ import annotations

import math

import numpy as np

from weft.cuda._cpython.float8 import Float8
from weft.cuda._cpython.promotion import ARITHMETIC, BITS, SHIFTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The classes of numbers in kernels, by dtype name.
SCALARS: dict[str, Any] = {}
# The same, by NumPy class.
_OF_NUMPY: dict[type, Any] = {}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOATS = ("float16", "float32", "float64")


def _wrapped(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _to_integer(value: Any, bits: int, signed: bool) -> int:
    """Convert a number: floats are truncated and saturate (at 32 bits if there are fewer), integers are cut."""
    if isinstance(value, (float, np.floating, Float8)):
        number = float(value)
        # Narrower types saturate to int32.
        wide, low_ones = max(bits, 32), signed or bits < 32
        low, high = (-(1 << (wide - 1)), (1 << (wide - 1)) - 1) if low_ones else (0, (1 << wide) - 1)
        if math.isnan(number):
            return 0
        value = low if number <= low else high if number >= high else int(number)
    elif isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.astype(np.int64)
    elif isinstance(value, (complex, np.complexfloating)):
        msg = f"a complex number cannot become an integer: {value}"
        raise TypeError(msg)
    return _wrapped(int(value), bits, signed)


def type_name(value: Any) -> str | None:
    """Give the name of a number's type; None if it is none."""
    cls = value.__class__
    known = _NAMES.get(cls)
    if known is not None:
        return known
    if isinstance(value, int):  # also a member of an enum
        return "int64" if -(1 << 63) <= value < 1 << 63 else "uint64"
    if isinstance(value, np.generic):
        return value.dtype.name if value.dtype.name in SCALARS else "boolean" if value.dtype.kind == "b" else None
    return None


def is_weak(value: Any) -> bool:
    """Say whether a number is Python's own, which has no type of its own with NumPy's rules."""
    return value.__class__ in (int, float, complex, bool)


class Truth(int):
    """A truth that has a type, where one of Python's would have none: in functions with NumPy's rules."""

    def __repr__(self) -> str:
        return str(bool(self))

    __str__ = __repr__


_NAMES: dict[type, str] = {
    bool: "boolean",
    float: "float64",
    complex: "complex128",
    np.bool_: "boolean",
    Truth: "boolean",
}


def item(value: Any) -> Any:
    """Give a number as Python's."""
    return value.item() if isinstance(value, np.generic) else value


class Operators:
    """The operators by Numba's rules: `operators` puts it here."""

    compute: Callable[[str, Any, Any], Any]
    compare: Callable[[str, Any, Any], Any]
    # The array's new element after `target operator= value`.
    update: Callable[[str, Any, Any], Any]


class Decider:
    """An operand that decides what its operator means."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]


def _binary(operator: str) -> dict[str, Callable[[Any, Any], Any]]:
    def forward(self: Any, other: Any) -> Any:
        return Operators.compute(operator, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return Operators.compute(operator, other, self)

    return {f"__{operator}__": forward, f"__r{operator}__": reflected}


def _comparison(operator: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: Operators.compare(operator, self, other)


def _divmod(self: Any, other: Any) -> Any:
    return Operators.compute("floordiv", self, other), Operators.compute("mod", self, other)


def _wide(self: Any) -> Any:
    name = self.__class__.__name__
    return SCALARS["uint64" if name.startswith("u") else "int64"]


def _view(self: Any, kind: Any) -> Any:
    """Give the same bits as a number of another type."""
    name = kind.__name__ if isinstance(kind, type) else np.dtype(kind).name
    return scalar(plain(self).view(getattr(np, name)))


def _round_integer(self: Any, digits: int | None = None) -> Any:
    return _wide(self)(round(int(self), digits))


def _round_bfloat16(self: Any, digits: int | None = None) -> Any:
    return round(SCALARS["float32"](self), digits)


def _shared(base: Any) -> dict[str, Any]:
    """Make the methods that all classes have."""
    methods: dict[str, Any] = {}
    for operator in (*ARITHMETIC, *BITS, *SHIFTS):
        methods.update(_binary(operator))
    methods.update({f"__{operator}__": _comparison(operator) for operator in COMPARISONS})
    methods["__divmod__"] = _divmod
    methods["__rdivmod__"] = lambda self, other: _divmod(other, self)
    methods["__hash__"] = lambda self: hash(self.item())
    methods["__repr__"] = methods["__str__"] = base.__str__
    methods["view"] = _view
    methods["__bool__"] = lambda self: bool(self.item())
    methods["__reduce__"] = lambda self: base(self).__reduce__()
    return methods


def _integer(name: str) -> None:
    base: Any = getattr(np, name)
    bits, signed = base().itemsize * 8, not name.startswith("u")
    methods = _shared(base)

    def new(cls: Any, value: Any = 0) -> Any:
        return base.__new__(cls, _to_integer(value, bits, signed))

    methods |= {
        "__new__": new,
        "__neg__": lambda self: _wide(self)(-int(self)),
        "__pos__": lambda self: _wide(self)(int(self)),
        "__invert__": lambda self: _wide(self)(~int(self)),
        "__abs__": lambda self: self.__class__(abs(int(self))),
        "__round__": _round_integer,
        "bit_count": lambda self: SCALARS["int64"](abs(int(self)).bit_count()),
    }
    _keep(name, base, methods)


def _float(name: str) -> None:
    base: Any = getattr(np, name)
    methods = _shared(base)

    def new(cls: Any, value: Any = 0.0) -> Any:
        return base.__new__(cls, value if value.__class__ is float else base(item(value)))

    def rounded(self: Any, digits: int | None = None) -> Any:
        number = float(self)
        if digits is None:
            return SCALARS["int64"](round(number) if math.isfinite(number) else number)
        return self.__class__(round(number, digits))

    methods |= {
        "__new__": new,
        "__neg__": lambda self: self.__class__(-float(self)),
        "__pos__": lambda self: self,
        "__abs__": lambda self: self.__class__(abs(float(self))),
        "__round__": rounded,
        "real": property(lambda self: self),
        "imag": property(lambda self: self.__class__(0)),
        "conjugate": lambda self: self,
    }
    _keep(name, base, methods)


def _complex(name: str, part: str) -> None:
    base: Any = getattr(np, name)
    methods = _shared(base)

    def new(cls: Any, real: Any = 0.0, imag: Any = None) -> Any:
        return base.__new__(cls, base(item(real) if imag is None else complex(float(real), float(imag))))

    methods |= {
        "__new__": new,
        "__neg__": lambda self: self.__class__(-complex(self)),
        "__pos__": lambda self: self,
        "__abs__": lambda self: SCALARS[part](np.hypot(complex(self).real, complex(self).imag)),
        "real": property(lambda self: SCALARS[part](complex(self).real)),
        "imag": property(lambda self: SCALARS[part](complex(self).imag)),
        "conjugate": lambda self: self.__class__(complex(self).conjugate()),
    }
    _keep(name, base, methods)


def _bfloat16() -> None:
    """Make `bfloat16`: a `float32` of which the upper half counts."""
    methods = _shared(np.float32)

    def new(cls: Any, value: Any = 0.0) -> Any:
        return np.float32.__new__(cls, _to_bfloat16(float(value)))

    methods |= {
        "__new__": new,
        "__neg__": lambda self: self.__class__(-float(self)),
        "__pos__": lambda self: self,
        "__abs__": lambda self: self.__class__(abs(float(self))),
        "__round__": _round_bfloat16,
    }
    made = type("bfloat16", (np.float32,), methods)
    SCALARS["bfloat16"] = made
    _NAMES[made] = "bfloat16"


def _to_bfloat16(value: float) -> np.float32:
    """Round to the nearest `bfloat16` at once, ties to even: by an odd `float32` between."""
    near = np.float32(value)
    if not np.isfinite(near) and math.isfinite(value):
        return near
    bits = int(near.view(np.uint32))
    exact = float(near) == value or not math.isfinite(value)
    if not exact:
        if (float(near) > value) == (value > 0):
            bits -= 1  # toward zero
        bits |= 1
    if math.isnan(value):
        return np.float32(math.nan)
    bits += 0x7FFF + (bits >> 16 & 1)
    return np.uint32(bits & 0xFFFF0000).view(np.float32)


def _keep(name: str, base: type, methods: dict[str, Any]) -> None:
    made: Any = type(name, (base,), methods)
    SCALARS[name] = made
    _NAMES[made] = name
    _OF_NUMPY[base] = lambda value: base.__new__(made, value)


class _Boolean:
    """`boolean` as a cast: its result is Python's `bool`."""

    def __new__(cls, value: Any = False) -> Any:
        return bool(item(value))


def scalar(value: Any) -> Any:
    """Convert NumPy's scalar to that of a kernel; return any other value unchanged."""
    convert = _OF_NUMPY.get(value.__class__)
    if convert is not None:
        return convert(value)
    if value.__class__ is np.bool_:
        return bool(value)
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, np.bytes_):
        return bytes(value)
    if isinstance(value, np.generic) and value.__class__.__name__ == "bfloat16" and value.__class__ not in _NAMES:
        return SCALARS["bfloat16"](float(value))  # of the package ml_dtypes
    return value


def plain(value: Any) -> Any:
    """Give a kernel's number as NumPy's own scalar, of the same type."""
    name = _NAMES.get(value.__class__)
    if name is None or value.__class__.__module__ == "builtins":
        return value
    if name == "bfloat16":
        return np.float32(value)
    return getattr(np, name)(value.item()) if name != "boolean" else bool(value)


def number(value: Any) -> Any:
    """Give an argument of a launch as a kernel has it: Python's numbers get a type."""
    cls = value.__class__
    if cls is int:
        return SCALARS[type_name(value) or "int64"](value)
    if cls is float:
        return SCALARS["float64"](value)
    if cls is complex:
        return SCALARS["complex128"](value)
    return scalar(value)


with np.errstate(all="ignore"):
    for _each in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        _integer(_each)
    for _each in _FLOATS:
        _float(_each)
    _complex("complex64", "float32")
    _complex("complex128", "float64")
    _bfloat16()
SCALARS["boolean"] = _Boolean
