"""Which types operators of kernels have, by the types of their operands: Numba's rules, and NumPy's (`typing="numpy"`).

Types are named as dtypes are, but for `boolean`. docs/language/arithmetic.md has the rules.
"""

from __future__ import annotations

import functools

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_HALVES = ("float16", "bfloat16")
# Types that combine with `float32` to `float32`: in operators, and in unification.
_BESIDE_FLOAT32 = {*_HALVES, "float32", "boolean", "int8", "uint8", "int16"}
_IN_FLOAT32 = {*_HALVES, "float32", "int8", "uint8", "int16", "uint16"}
_BESIDE_HALF = {"float16": {"boolean", "int8"}, "bfloat16": {"boolean", "int8", "uint8"}}
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITS = ("and", "or", "xor")
SHIFTS = ("lshift", "rshift")


@functools.cache
def is_complex(name: str) -> bool:
    """Say whether a type is one of complex numbers."""
    return name.startswith("complex")


@functools.cache
def is_integer(name: str) -> bool:
    """Say whether a type is one of integers or truths."""
    return name == "boolean" or name in _INTEGERS


def is_unsigned(name: str) -> bool:
    """Say whether a type is one of unsigned integers."""
    return name.startswith("u")


def is_half(name: str) -> bool:
    """Say whether a type is one of 16-bit floats."""
    return name in _HALVES


def bits(name: str) -> int:
    """Give the bits of an integer type."""
    return 8 if name == "boolean" else int(name.lstrip("uint"))


@functools.cache
def promote(a: str, b: str) -> str:
    """Give the type of a sum of two numbers by Numba's rules."""
    if is_complex(a) or is_complex(b):
        small = {*_BESIDE_FLOAT32, "complex64"}
        return "complex64" if a in small and b in small else "complex128"
    if is_integer(a) and is_integer(b):
        return "uint64" if is_unsigned(a) and is_unsigned(b) else "int64"
    for half, others in _BESIDE_HALF.items():
        if half in (a, b) and {a, b} <= {half, *others}:
            return half
    return "float32" if a in _BESIDE_FLOAT32 and b in _BESIDE_FLOAT32 else "float64"


@functools.cache
def unify(a: str, b: str) -> str:
    """Give the type of a value that is of one or the other type."""
    if a == b or b == "boolean":
        return a
    if a == "boolean":
        return b
    if is_complex(a) or is_complex(b):
        small = {*_IN_FLOAT32, "complex64"}
        return "complex64" if a in small and b in small else "complex128"
    for half in _HALVES:
        if half in (a, b) and (b if a == half else a) in ("int8", "uint8"):
            return half
    if not (is_integer(a) and is_integer(b)):
        return "float32" if a in _IN_FLOAT32 and b in _IN_FLOAT32 else "float64"
    if is_unsigned(a) == is_unsigned(b):
        return a if bits(a) >= bits(b) else b
    signed, unsigned = (b, a) if is_unsigned(a) else (a, b)
    if bits(unsigned) < bits(signed):
        return signed
    return "float64" if bits(unsigned) == 64 else f"int{2 * bits(unsigned)}"


@functools.cache
def operator_type(operator: str, a: str, b: str) -> str | None:
    """Give the type of what an operator gives by Numba's rules; None where it takes no such numbers."""
    if operator in SHIFTS or operator in BITS:
        if not (is_integer(a) and is_integer(b)):
            return None
        if operator in SHIFTS:
            return "uint64" if is_unsigned(a) else "int64"
        return "boolean" if a == b == "boolean" else promote(a, b)
    kind = promote(a, b)
    if operator in ("add", "sub", "mul"):
        return kind
    if operator == "truediv":
        return "float64" if is_integer(kind) else kind
    if operator == "pow":
        if a == "boolean" and b == "int32":
            return "float32"
        if a in ("float32", *_HALVES) and is_integer(b):
            return "float32"
    elif is_complex(kind):
        return None
    return "float32" if is_half(kind) else kind


# ---- NumPy's rules -------------------------------------------------------------------------------------------------


def _kind(name: str) -> int:
    return 0 if name == "boolean" else 1 if is_integer(name) else 3 if is_complex(name) else 2


@functools.cache
def meet(a: str, weak_a: bool, b: str, weak_b: bool) -> tuple[str, bool]:
    """Give NumPy's `result_type` of two numbers, and whether it is a number without a type of its own."""
    if not weak_a and not weak_b:
        return unify(a, b), False
    if weak_a and weak_b:
        if _kind(a) != _kind(b):
            return (a if _kind(a) > _kind(b) else b), True
        return (a if a == b else "int64"), True
    weak, typed = (a, b) if weak_a else (b, a)
    if _kind(weak) <= _kind(typed):
        return typed, False
    return ("complex64" if is_complex(weak) and typed in ("float32", *_HALVES) else weak), False


@functools.cache
def numpy_operator_type(operator: str, common: str, weak: bool) -> tuple[str, str] | None:
    """Give the type that an operator computes in and the one of its result; None where NumPy has no such operator."""
    if is_complex(common):
        return (common, common) if operator in ("add", "sub", "mul", "truediv", "pow") else None
    counted = ("int64" if weak else "int8") if common == "boolean" else common
    if operator in BITS:
        return (common, common) if is_integer(common) else None
    if operator in SHIFTS:
        return (counted, counted) if is_integer(counted) else None
    if common == "boolean" and not weak and operator in ("add", "mul", "sub"):
        return None if operator == "sub" else ("boolean", "boolean")
    if operator == "truediv":
        counted = "float64" if is_integer(counted) else counted
    if operator in ("floordiv", "mod", "pow") and is_half(counted):
        return "float32", counted
    return counted, counted
