"""Numbers of kernels that CPython runs: NumPy's scalars with the results of Numba's rules.

`int32`, `float32` and the others are subclasses of NumPy's scalars of the same names, so that they print, index and
are stored as these are; only what operators give is another: integers become 64 bits wide and wrap, nothing divides
by zero. A truth is Python's `bool`, as no class can be made of NumPy's. Python's own numbers, which literals are,
count as `int64` and `float64` beside them. docs/language.md has the rules.
"""

from __future__ import annotations

import math

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WORD = 1 << 64
# By the names of their dtypes: the classes of numbers in kernels.
SCALARS: dict[str, Any] = {}
# By NumPy's classes: the same.
_OF_NUMPY: dict[type, Any] = {}
# The kinds of numbers beside each other, by their names; `bool` is Python's.
_NARROW = ("boolean", "int8", "uint8", "int16")
_FLOATS = ("float16", "float32", "float64")


def _wrapped(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _to_integer(value: Any, bits: int, signed: bool) -> int:
    """Convert a number: floats are truncated and saturate (at 32 bits if there are fewer), integers are cut."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        # Less than 32 bits are those of an int32.
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


def _name(value: Any) -> str | None:
    """Give the name of a number's type; None if it is none."""
    cls = value.__class__
    known = _NAMES.get(cls)
    if known is not None:
        return known
    if cls is int:
        return "int64" if -(1 << 63) <= value < 1 << 63 else "uint64"
    if isinstance(value, np.generic):
        return value.dtype.name if value.dtype.name in SCALARS else "boolean" if value.dtype.kind == "b" else None
    return None


_NAMES: dict[type, str] = {bool: "boolean", float: "float64", complex: "complex128", np.bool_: "boolean"}


def _is_integer(name: str) -> bool:
    return name == "boolean" or name.startswith(("int", "uint"))


def promote(a: str, b: str) -> str:
    """Give the type of a sum of two numbers."""
    if _is_integer(a) and _is_integer(b):
        return "uint64" if a.startswith("u") and b.startswith("u") else "int64"
    if "complex128" in (a, b):
        return "complex128"
    if "complex64" in (a, b):
        other = b if a == "complex64" else a
        narrow = other in ("complex64", "float32", "float16", "bfloat16") or other in _NARROW
        return "complex64" if narrow else "complex128"
    for half, with_it in (("float16", ("boolean", "int8")), ("bfloat16", ("boolean", "int8", "uint8"))):
        if half in (a, b) and all(name == half or name in with_it for name in (a, b)):
            return half
    small = ("float32", "float16", "bfloat16", *_NARROW)
    return "float32" if a in small and b in small else "float64"


# ---- what operators compute, of Python's numbers -------------------------------------------------------------------


def _float_quotient(a: float, b: float) -> float:
    if b:
        return a / b
    if math.isnan(a) or not a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _floor_divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return 0 if b == 0 or (b == -1 and a == -(1 << 63)) else a // b
    return a // b if b and math.isfinite(a) else np.floor_divide(np.float64(a), np.float64(b)).item()


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return 0 if b == 0 else a % b
    return a % b if b and math.isfinite(a) else math.nan


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, complex) or isinstance(b, complex):
        return np.divide(np.complex128(a), np.complex128(b)).item()
    return _float_quotient(float(a), float(b))


def _integer_power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, _WORD)
    if a in (1, -1):
        return a if b % 2 else 1
    return -(1 << 63) if a == 0 else 0


def _power_by_squaring(cls: Any, base: Any, exponent: int) -> Any:
    """Multiply as often as weft does, each product rounded."""
    result, factor, left = cls(1), cls(base), abs(exponent)
    while left:
        if left & 1:
            result = result * factor
        left >>= 1
        if left:
            factor = factor * factor
    return cls(1) / result if exponent < 0 else result


def _power(left: Any, right: Any, a: str, b: str) -> Any:
    if _is_integer(a) and _is_integer(b):
        if a == "boolean" and b == "int32":
            return SCALARS["float32"](bool(left) or not right)
        return SCALARS[promote(a, b)](_integer_power(int(left), int(right)))
    if _is_integer(b) and abs(int(right)) <= 65536:
        name = "float32" if a in ("float16", "bfloat16") else a
        return _power_by_squaring(SCALARS[name], left, int(right))
    kind = promote(a, b)
    kind = "float32" if kind in ("float16", "bfloat16") else kind
    numpy = np.complex128 if kind.startswith("complex") else np.float32 if kind == "float32" else np.float64
    return SCALARS[kind](np.power(numpy(left), numpy(right)))


def _item(value: Any) -> Any:
    """Give a number as Python's."""
    return value.item() if isinstance(value, np.generic) else value


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": _floor_divide,
    "mod": _remainder,
    "truediv": _quotient,
}
_BITS: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_SHIFTS: dict[str, Callable[[int, int], int]] = {"lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compute(operator: str, left: Any, right: Any) -> Any:
    """Give what an operator gives of two numbers, or NotImplemented."""
    a, b = _name(left), _name(right)
    if a is None or b is None:
        return NotImplemented
    if operator in _SHIFTS:
        if not (_is_integer(a) and _is_integer(b)):
            return NotImplemented
        kind = "uint64" if a.startswith("u") else "int64"
        return SCALARS[kind](_SHIFTS[operator](int(left), int(right) & 63))
    if operator in _BITS:
        if not (_is_integer(a) and _is_integer(b)):
            return NotImplemented
        value = _BITS[operator](int(left), int(right))
        return bool(value) if a == b == "boolean" else SCALARS[promote(a, b)](value)
    if operator == "pow":
        return _power(left, right, a, b)
    kind = promote(a, b)
    if operator == "truediv" and _is_integer(kind):
        kind = "float64"
    if operator in ("floordiv", "mod"):
        if kind.startswith("complex"):
            return NotImplemented
        if kind in ("float16", "bfloat16"):
            kind = "float32"
    left, right = _item(left), _item(right)
    if _is_integer(kind) or kind == "float64":
        # Exact, and rounded once.
        left, right = (left, right) if _is_integer(kind) else (float(left), float(right))
    else:
        convert = SCALARS[kind]
        left = left if a == kind else _item(convert(left))
        right = right if b == kind else _item(convert(right))
    return SCALARS[kind](_ARITHMETIC[operator](left, right))


def _binary(operator: str) -> dict[str, Callable[[Any, Any], Any]]:
    def forward(self: Any, other: Any) -> Any:
        return compute(operator, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return compute(operator, other, self)

    return {f"__{operator}__": forward, f"__r{operator}__": reflected}


def _comparison(operator: str) -> Callable[[Any, Any], Any]:
    decide = _COMPARISONS[operator]

    def compare(self: Any, other: Any) -> Any:
        if _name(other) is None:
            return NotImplemented
        return decide(_item(self), _item(other))

    return compare


def _divmod(self: Any, other: Any) -> Any:
    return compute("floordiv", self, other), compute("mod", self, other)


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
    for operator in (*_ARITHMETIC, *_BITS, *_SHIFTS, "pow"):
        methods.update(_binary(operator))
    methods.update({f"__{operator}__": _comparison(operator) for operator in _COMPARISONS})
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
        return base.__new__(cls, base(_item(value)))

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

    def new(cls: Any, real: Any = 0.0, imag: Any = 0.0) -> Any:
        return base.__new__(cls, base(complex(_item(real)) + complex(0, _item(imag)) if imag else _item(real)))

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
    """What a cast to a truth is; the truth itself is Python's."""

    def __new__(cls, value: Any = False) -> Any:
        return bool(_item(value))


def scalar(value: Any) -> Any:
    """Give what NumPy gave as a kernel has it; what is no scalar of a number's stays as it is."""
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
        return SCALARS[_name(value) or "int64"](value)
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
