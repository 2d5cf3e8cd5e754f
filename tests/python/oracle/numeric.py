"""Numba's typing and arithmetic rules on NumPy scalars, and on arrays where a docstring says so.

Every function takes and returns NumPy values of a dtype that kernels support. Python numbers become int64 (uint64 from
2^63), float64, complex128 and bool. Where Numba leaves a result undefined, weft's definition applies: shift counts are
modulo 64, floats saturate to integers.
"""

from __future__ import annotations

import math
import operator

import numpy as np

_LEAST = -(2**63)
INT32, INT64, UINT64, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("int32", "int64", "uint64", "float32", "float64"))
COMPLEX64, COMPLEX128, BOOL = (np.dtype(name) for name in ("complex64", "complex128", "bool"))

# Integers that a float32 or complex64 partner does not widen (`+`, api 4.3).
FLOAT16 = np.dtype("float16")
HALF = {np.dtype(name) for name in ("float16", "bool", "int8")}  # operations that remain float16
NARROW = {np.dtype(name) for name in ("bool", "int8", "uint8", "int16")}


def value(item: object) -> object:
    """A Python number as a NumPy scalar of its Numba type; tuples item by item; other objects unchanged."""
    if isinstance(item, bool):
        return np.bool_(item)
    if isinstance(item, int):
        return np.int64(item) if -(2**63) <= item < 2**63 else np.uint64(item if item >= 0 else item + 2**64)
    if isinstance(item, float) and not isinstance(item, np.generic):
        return np.float64(item)
    if isinstance(item, complex) and not isinstance(item, np.generic):
        return np.complex128(item)
    if type(item) is tuple:
        return tuple(value(part) for part in item)
    return item


def is_int(dtype: np.dtype) -> bool:
    """Integers and bool."""
    return dtype.kind in "iub"


def promote(left: np.dtype, right: np.dtype) -> np.dtype:
    """The result type of `+`, `-` and `*`."""
    if is_int(left) and is_int(right):
        return UINT64 if left.kind == right.kind == "u" else INT64
    if FLOAT16 in (left, right) and {left, right} <= HALF:
        return FLOAT16
    wide = any(dtype in (FLOAT64, COMPLEX128) or (is_int(dtype) and dtype not in NARROW) for dtype in (left, right))
    if "c" in (left.kind, right.kind):
        return COMPLEX128 if wide else COMPLEX64
    return FLOAT64 if wide else FLOAT32


def unify(left: np.dtype, right: np.dtype) -> np.dtype:
    """The unified type of two types, for variables, `min`, `max` and conditional expressions."""
    return np.promote_types(left, right)


def result_type(op: str, left: np.dtype, right: np.dtype) -> np.dtype:
    """The type of `left op right`. Raises TypeError where Numba has no such operator."""
    if op in ("<<", ">>"):
        _need_ints(op, left, right)
        return UINT64 if left.kind == "u" else INT64
    if op in ("&", "|", "^"):
        _need_ints(op, left, right)
        return BOOL if left == right == BOOL else promote(left, right)
    if op in ("//", "%") and "c" in (left.kind, right.kind):
        raise TypeError(f"{op} does not take {left} and {right}")
    if op == "/" and is_int(left) and is_int(right):
        return FLOAT64
    if op == "**" and is_int(right):
        if left == BOOL and right == np.dtype("int32"):
            return FLOAT32
        if left.kind == "f":
            return FLOAT32 if left == FLOAT16 else left
    found = promote(left, right)
    return FLOAT32 if found == FLOAT16 and op in ("//", "%", "**") else found


def _need_ints(op: str, left: np.dtype, right: np.dtype) -> None:
    if not (is_int(left) and is_int(right)):
        raise TypeError(f"{op} does not take {left} and {right}")


def binary(op: str, left: object, right: object) -> object:
    """`left op right` on scalars or arrays."""
    if isinstance(left, tuple) and isinstance(right, tuple) and op == "+":
        return left + right
    left, right = value(left), value(right)
    if left.dtype.kind in "mM" or right.dtype.kind in "mM":
        with np.errstate(all="ignore"):
            return _TIMES[op](left, right)
    dtype = result_type(op, left.dtype, right.dtype)
    if op == "**" and left.dtype.kind == "f" and right.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            return _float_to_integer(left, right, dtype)
    with np.errstate(all="ignore"):
        return _BINARY[op](cast(left, dtype), cast(right, dtype), dtype)


# Type rules of `binary`, `compare` and `unary` for scalars, cached for the fast functions below. Their callers have
# disabled NumPy's warnings.
_PLANS: dict[tuple, tuple] = {}


def quick_binary(op: str, left: object, right: object) -> object:
    """`binary`."""
    key = op, left.__class__, right.__class__
    if (plan := _PLANS.get(key)) is None:
        if not (isinstance(left, np.generic) and isinstance(right, np.generic)):
            return binary(op, left, right)
        if op == "**" or left.dtype.kind in "mM" or right.dtype.kind in "mM":
            return binary(op, left, right)
        dtype = result_type(op, left.dtype, right.dtype)
        plan = _PLANS[key] = dtype, *(None if item.dtype == dtype else dtype.type for item in (left, right))
    dtype, left_as, right_as = plan
    return _BINARY[op](left_as(left) if left_as else left, right_as(right) if right_as else right, dtype)


def quick_compare(op: str, left: object, right: object) -> object:
    """`compare`."""
    kind = left.__class__
    if kind is right.__class__ and kind in _COMPARABLE and op in _SAME:
        return _SAME[op](left, right)
    return compare(op, left, right)


def quick_unary(op: str, operand: object) -> object:
    """`unary`."""
    if op == "not" and operand.__class__ in _COMPARABLE:
        return np.bool_(not operand)
    if operand.__class__ in _WIDE:
        return _UNARY[op](operand)
    return unary(op, operand)


def known_power(left: object, exponent: int) -> object:
    """`left ** exponent` with an integer literal as exponent: exponentiation by squaring, up to 65,536."""
    left = value(left)
    dtype = result_type("**", left.dtype, INT64)
    if abs(exponent) > 65536 or dtype.kind not in "fiu" or (dtype.kind != "f" and exponent < 0):
        return binary("**", left, exponent)
    with np.errstate(all="ignore"):
        return _products(cast(left, dtype), exponent, dtype)


def _products(square: object, exponent: int, dtype: np.dtype) -> object:
    """Exponentiation by squaring; for a negative exponent, the reciprocal."""
    one = np.ones_like(square)
    result, left = None, abs(exponent)
    while left:
        if left & 1:
            result = square if result is None else _BINARY["*"](result, square, dtype)
        left >>= 1
        square = _BINARY["*"](square, square, dtype) if left else square
    if result is None:
        return one
    return result if exponent >= 0 else _BINARY["/"](one, result, dtype)


def _float_to_integer(left: object, right: object, dtype: np.dtype) -> object:
    """`left ** right` of a float and an integer: products, as for a constant exponent."""
    if np.ndim(left) == 0 == np.ndim(right):
        exponent = int(right)
        if abs(exponent) > 65536:
            return _BINARY["**"](dtype.type(left), dtype.type(right), dtype)
        return _products(dtype.type(left), exponent, dtype)
    pairs = np.broadcast(left, right)
    items = [_float_to_integer(base, exponent, dtype) for base, exponent in pairs]
    return np.array(items, dtype).reshape(pairs.shape)


def _floordiv(a, b, dtype):
    if dtype == INT64 and np.ndim(a) == 0 == np.ndim(b):
        return np.int64(0) if b == -1 and a == _LEAST else np.floor_divide(a, b)
    result = np.floor_divide(a, b)
    if dtype == INT64:  # the minimum // -1 is 0
        result = np.where((a == np.iinfo(np.int64).min) & (b == -1), np.int64(0), result)
    return dtype.type(result) if np.ndim(result) == 0 else result


def _mod(a, b, dtype):
    if dtype == INT64 and np.ndim(a) == 0 == np.ndim(b):
        return np.int64(0) if b == -1 else np.remainder(a, b)
    if dtype == INT64:  # the hardware traps on minimum % -1, and NumPy may too
        b = np.where(b == -1, np.int64(1), b)
    result = np.remainder(a, b)
    return dtype.type(result) if np.ndim(result) == 0 else result


def _pow(a, b, dtype):
    if not is_int(dtype):
        return np.power(a, b)
    if np.ndim(a) == 0:
        return _int_pow(int(a), int(b), dtype)
    return np.array([_int_pow(int(x), int(y), dtype) for x, y in np.nditer([a, b])], dtype).reshape(a.shape)


def _int_pow(base: int, exponent: int, dtype: np.dtype):
    if exponent >= 0:
        result = pow(base, exponent, 1 << 64)
    elif base == 0:
        result = 1 << 63
    elif base in (1, -1):
        result = base ** (exponent & 1)
    else:
        result = 0
    return np.uint64(result % (1 << 64)).astype(dtype)


_BINARY = {
    "+": lambda a, b, _: a + b,
    "-": lambda a, b, _: a - b,
    "*": lambda a, b, _: a * b,
    "/": lambda a, b, _: np.true_divide(a, b),
    "//": _floordiv,
    "%": _mod,
    "**": _pow,
    "<<": lambda a, b, dtype: np.left_shift(a, b & dtype.type(63)),
    ">>": lambda a, b, dtype: np.right_shift(a, b & dtype.type(63)),
    "&": lambda a, b, _: a & b,
    "|": lambda a, b, _: a | b,
    "^": lambda a, b, _: a ^ b,
}

_TIMES = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide, "%": np.remainder,
}  # fmt: skip

_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compare(op: str, left: object, right: object) -> object:
    """`left op right` as a bool; integers compare exactly, also a signed with an unsigned one."""
    if op == "is":
        return np.bool_(left is right)
    if op == "is not":
        return np.bool_(left is not right)
    if (left is None or right is None) and op in ("==", "!="):
        return np.bool_((left is right) == (op == "=="))
    if isinstance(left, (str, bytes)) or isinstance(right, (str, bytes)):
        if op in ("in", "not in"):
            return np.bool_((left in right) == (op == "in"))
        return np.bool_(_SAME[op](left, right))
    if op in ("in", "not in"):
        return np.bool_(any(compare("==", left, item) for item in right) == (op == "in"))
    if isinstance(left, tuple) and isinstance(right, tuple) and op in ("<", "<=", ">", ">="):
        for one, other in zip(left, right, strict=False):  # lexicographic order
            if not compare("==", one, other):
                return compare(op, one, other)
        return np.bool_(_COMPARE[op](len(left), len(right)))
    if isinstance(left, tuple) and isinstance(right, tuple):
        equal = len(left) == len(right) and all(compare("==", *pair) for pair in zip(left, right, strict=True))
        return np.bool_(equal == (op == "=="))
    if (
        isinstance(left, (tuple, np.dtype, type))
        or isinstance(right, (tuple, np.dtype, type))
        or hasattr(left, "whole")
    ):
        return np.bool_(left == right if op == "==" else left != right)
    left, right = value(left), value(right)
    if "f" in (left.dtype.kind, right.dtype.kind) and "c" not in (left.dtype.kind, right.dtype.kind):
        dtype = unify(left.dtype, right.dtype)
        left, right = cast(left, dtype), cast(right, dtype)
    with np.errstate(all="ignore"):
        return _COMPARE[op](left, right)


def unary(op: str, operand: object) -> object:
    """`op operand`."""
    operand = value(operand)
    if op == "not":
        return np.bool_(not operand)
    dtype = operand.dtype
    if op == "~" and dtype == BOOL:
        return ~operand
    if is_int(dtype):
        operand = cast(operand, UINT64 if dtype.kind == "u" else INT64)
    with np.errstate(all="ignore"):
        return _UNARY[op](operand)


_UNARY = {"-": np.negative, "+": np.positive, "~": np.invert}


def cast(item: object, dtype: object) -> object:
    """A scalar or array converted as weft converts: integers wrap, floats truncate and saturate, NaN becomes 0.

    Floats reach 8- and 16-bit integers through int32. To bool is `!= 0`.
    """
    kind = dtype if isinstance(dtype, type) else np.dtype(dtype).type
    if item.__class__ is kind:
        return item
    item = value(item)
    if (convert := _CONVERSIONS.get((item.__class__, kind))) is not None:  # the common case
        return convert(item)
    dtype, array = np.dtype(dtype), np.asarray(item)
    with np.errstate(all="ignore"):
        if dtype == BOOL:
            result = array != 0
        elif array.dtype.kind == "f" and dtype.kind in "iu":
            result = _saturate(array, dtype)
        elif array.dtype.kind == "c" and dtype.kind != "c":
            raise TypeError(f"no conversion from {array.dtype} to {dtype}")
        else:
            result = array.astype(dtype)
    return result[()] if np.ndim(result) == 0 else result


def _saturating(kind: type):
    """The conversion of a float to a type of integers."""
    info = np.iinfo(INT32 if np.dtype(kind).itemsize < 4 else kind)
    low, high = int(info.min), int(info.max)
    least, modulus = int(np.iinfo(kind).min), 1 << np.iinfo(kind).bits

    def convert(item):
        item = float(item)
        if math.isnan(item):
            return kind(0)
        whole = low if item <= low else high if item >= high else int(item)
        return kind((whole - least) % modulus + least)

    return convert


def _narrowed(item):
    with np.errstate(all="ignore"):
        return np.float32(item)


_INTS = [np.dtype(name).type for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()]
_FLOATS = [np.float32, np.float64]
_REALS = [np.bool_, *_INTS, *_FLOATS]
_COMPARABLE = frozenset(_REALS)
_WIDE = {np.int64, np.uint64, *_FLOATS}  # types that arithmetic does not widen
_SAME = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

# Conversions between scalars.
_CONVERSIONS = {(one, one): lambda item: item for one in _REALS}
_CONVERSIONS |= {(one, two): two for one in [np.bool_, *_INTS] for two in _INTS + _FLOATS if one is not two}
_CONVERSIONS |= {(np.float32, np.float64): np.float64, (np.float64, np.float32): _narrowed}
_CONVERSIONS |= {(one, np.bool_): np.bool_ for one in [*_INTS, *_FLOATS]}
_CONVERSIONS |= {(one, two): _saturating(two) for one in _FLOATS for two in _INTS}


def _saturate(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    through = INT32 if dtype.itemsize < 4 else dtype
    info = np.iinfo(through)
    whole = np.trunc(np.where(np.isnan(array), 0, array).astype(np.float64))
    low, high = whole <= float(info.min), whole >= float(info.max)
    safe = np.where(low | high, 0.0, whole).astype(through)
    result = np.where(low, through.type(info.min), np.where(high, through.type(info.max), safe))
    return result.astype(dtype)
