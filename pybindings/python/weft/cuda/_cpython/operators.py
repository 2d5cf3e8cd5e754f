"""The results of operators in kernels that CPython runs, by Numba's rules and by NumPy's (`typing="numpy"`).

Sums, products and quotients of floats round once, by Python's `float64`, which has more than twice the digits of the
smaller types. Compiled code (`native`) computes operations that IEEE 754 does not define, like powers and complex
products.
"""

from __future__ import annotations

import enum
import functools
import operator as python

import numpy as np

from weft.cuda._cpython import native, scalars
from weft.cuda._cpython.promotion import (
    SHIFTS,
    bits,
    is_complex,
    is_half,
    is_integer,
    is_unsigned,
    meet,
    numpy_operator_type,
    operator_type,
    promote,
    unify,
)
from weft.cuda._cpython.scalars import COMPARISONS, SCALARS, Truth, is_weak, item, number, plain, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WORD = 1 << 64
_LARGEST_MULTIPLIED = 1 << 16
_SYMBOLS = {"mul": "*", "truediv": "/", "pow": "**"}
_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": python.add,
    "sub": python.sub,
    "mul": python.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "and": python.and_,
    "or": python.or_,
    "xor": python.xor,
    "lshift": python.lshift,
    "rshift": python.rshift,
}
_UNARY: dict[str, Callable[[Any], Any]] = {"neg": python.neg, "pos": python.pos, "invert": python.invert}
# Python's operators, for operands that are not numbers.
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": python.add,
    "sub": python.sub,
    "mul": python.mul,
    "truediv": python.truediv,
    "floordiv": python.floordiv,
    "mod": python.mod,
    "pow": python.pow,
    "and": python.and_,
    "or": python.or_,
    "xor": python.xor,
    "lshift": python.lshift,
    "rshift": python.rshift,
    "matmul": python.matmul,
    "eq": python.eq,
    "ne": python.ne,
    "lt": python.lt,
    "le": python.le,
    "gt": python.gt,
    "ge": python.ge,
}


# ---- operators at one type -----------------------------------------------------------------------------------------


def _quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _integers(operator: str, kind: str, a: int, b: int) -> Any:
    if kind == "boolean":  # the sum of bools is `or`, the product `and`
        return bool(a | b if operator in ("add", "or") else a & b if operator in ("mul", "and") else a ^ b)
    if operator == "pow":
        return SCALARS[kind](_integer_power(kind, a, b))
    if operator == "floordiv" and b == -1 and not is_unsigned(kind) and a == -(1 << (bits(kind) - 1)):
        return SCALARS[kind](0)
    return SCALARS[kind](_INTEGERS[operator](a, b))


def _integer_power(kind: str, a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, _WORD)
    if a in (1, -1):
        return a if b % 2 else 1
    return -(1 << (bits(kind) - 1)) if a == 0 else 0


def _reals(operator: str, kind: str, left: Any, right: Any) -> Any:
    convert = SCALARS[kind]
    if operator in ("floordiv", "mod"):
        a, b = plain(convert(left)), plain(convert(right))
        with np.errstate(all="ignore"):
            return convert(np.floor_divide(a, b) if operator == "floordiv" else np.remainder(a, b))
    a = float(left if left.__class__ is convert else convert(left))
    b = float(right if right.__class__ is convert else convert(right))
    if operator == "truediv":
        return convert(_quotient(a, b))
    return convert(a + b if operator == "add" else a - b if operator == "sub" else a * b)


def _complexes(operator: str, kind: str, left: Any, right: Any) -> Any:
    convert = SCALARS[kind]
    a, b = convert(left), convert(right)
    if operator in ("add", "sub"):
        x, y = complex(a), complex(b)
        parts = [PYTHON[operator](x.real, y.real), PYTHON[operator](x.imag, y.imag)]
        return convert(*parts)
    return native.expression(f"a0 {_SYMBOLS[operator]} a1", (a, b))


def _computed(operator: str, kind: str, left: Any, right: Any) -> Any:
    """Give what an operator gives that computes at a type."""
    if is_integer(kind):
        convert = SCALARS[kind]
        return _integers(operator, kind, int(convert(left)), int(convert(right)))
    return (_complexes if is_complex(kind) else _reals)(operator, kind, left, right)


def _squared(kind: str, base: Any, exponent: int) -> Any:
    """Multiply as often as kernels do, each product rounded."""
    result, factor, left = SCALARS[kind](1), SCALARS[kind](base), abs(exponent)
    while left:
        if left & 1:
            result = _reals("mul", kind, result, factor)
        left >>= 1
        if left:
            factor = _reals("mul", kind, factor, factor)
    return _reals("truediv", kind, 1, result) if exponent < 0 else result


def _float_power(kind: str, left: Any, right: Any) -> Any:
    """Give a power that is a float: products, if the base is a float and the exponent an integer."""
    base, exponent = type_name(left), type_name(right)
    multiplies = not is_integer(base or "") and exponent != "boolean" and is_integer(exponent or "")
    if multiplies and abs(int(right)) <= _LARGEST_MULTIPLIED:
        return _squared(kind, left, int(right))
    return native.expression("math.pow(a0, a1)", (SCALARS[kind](left), SCALARS[kind](right)))


def known_complex_power(left: Any, exponent: int) -> Any:
    """Give the power of a complex number to an integer literal."""
    return native.expression(f"a0 ** {exponent}", (number(left),))


# ---- with Numba's rules --------------------------------------------------------------------------------------------


def compute(operator: str, left: Any, right: Any) -> Any:
    """Give what an operator gives of two numbers by Numba's rules; NotImplemented for what are none."""
    a, b = type_name(left), type_name(right)
    if a is None or b is None:
        return NotImplemented
    kind = operator_type(operator, a, b)
    if kind is None:
        return NotImplemented
    if operator == "pow" and not is_integer(kind) and not is_complex(kind):
        return _float_power(kind, left, right)
    if operator in SHIFTS:
        right = int(right) & 63
    return _computed(operator, kind, left, right)


def compare(operator: str, left: Any, right: Any) -> Any:
    """Compare two numbers by Numba's rules; NotImplemented for what are none."""
    a, b = type_name(left), type_name(right)
    if a is None or b is None:
        return NotImplemented
    if is_integer(a) and is_integer(b):
        return PYTHON[operator](int(left), int(right))
    return _compared(operator, promote(a, b), left, right)


def _compared(operator: str, kind: str, left: Any, right: Any) -> Any:
    if is_complex(kind) and operator not in ("eq", "ne"):
        return NotImplemented
    convert = SCALARS[kind]
    return PYTHON[operator](item(convert(left)), item(convert(right)))


scalars.Operators.compute, scalars.Operators.compare = staticmethod(compute), staticmethod(compare)


def _negated(value: Any) -> Any:
    kind = type_name(value)
    assert kind is not None
    if is_complex(kind):
        return SCALARS[kind](-value.real, -value.imag)
    return SCALARS[kind](-float(value))


def _numba_unary(operator: str, value: Any) -> Any:
    kind = type_name(value)
    if kind is None or not is_integer(kind):
        return number(value) if operator == "pos" else _negated(value)
    if operator == "invert" and kind == "boolean":
        return not value
    convert = SCALARS[promote(kind, kind)]
    return convert(_UNARY[operator](int(value)))


# ---- with NumPy's rules --------------------------------------------------------------------------------------------


def weakened(value: Any) -> Any:
    """Give a number as one of Python's, which has no type of its own."""
    kind = type_name(value)
    if kind is None:
        return value
    if kind == "boolean":
        return bool(value)
    return int(value) if is_integer(kind) else complex(value) if is_complex(kind) else float(value)


def strengthened(value: Any) -> Any:
    """Give a number with a type of its own."""
    return Truth(bool(value)) if type_name(value) == "boolean" else number(value)


def numpy_compute(operator: str, left: Any, right: Any, *, known: bool = False) -> Any:
    """Give what an operator gives of two numbers by NumPy's rules; NotImplemented for what are none.

    The right one may be an integer literal.
    """
    a, b = type_name(left), type_name(right)
    if a is None or b is None:
        return NotImplemented
    common, weak = meet(a, is_weak(left), b, is_weak(right))
    found = numpy_operator_type(operator, common, weak)
    if found is None:
        return NotImplemented
    work, result = found
    if is_half(result):
        left, right = SCALARS[result](left), right if known else SCALARS[result](right)
    if operator == "pow" and not is_integer(work) and not is_complex(work):
        value = _float_power(work, left, right)
    elif operator in SHIFTS:
        value = _numpy_shift(operator, work, left, right)
    else:
        value = _computed(operator, work, left, right)
    return weakened(value) if weak else strengthened(SCALARS[result](value))


def _numpy_shift(operator: str, kind: str, left: Any, right: Any) -> Any:
    value, amount = int(SCALARS[kind](left)), int(SCALARS[kind](right))
    if not 0 <= amount < bits(kind):
        return SCALARS[kind](-1 if operator == "rshift" and value < 0 else 0)
    return _integers(operator, kind, value, amount)


def numpy_compare(operator: str, left: Any, right: Any) -> Any:
    """Compare two numbers by NumPy's rules; NotImplemented for what are none."""
    a, b = type_name(left), type_name(right)
    if a is None or b is None:
        return NotImplemented
    common, weak = meet(a, is_weak(left), b, is_weak(right))
    if is_integer(a) and is_integer(b):
        found = PYTHON[operator](int(left), int(right))
    else:
        found = _compared(operator, common, left, right)
    return found if weak or found is NotImplemented else Truth(found)


def _numpy_unary(operator: str, value: Any) -> Any:
    kind = type_name(value)
    assert kind is not None
    if not is_integer(kind):
        found = number(value) if operator == "pos" else _negated(value)
    elif operator == "invert" and kind == "boolean" and not is_weak(value):
        return Truth(not value)
    else:
        convert = SCALARS["int64" if kind == "boolean" else kind]
        found = convert(_UNARY[operator](int(value)))
    return weakened(found) if is_weak(value) else found


# ---- called by rewritten code --------------------------------------------------------------------------------------


def _unknown(symbol: str, left: Any, right: Any) -> TypeError:
    return TypeError(f"`{symbol}` does not take {type(left).__name__} and {type(right).__name__}")


# The number types of Python's classes.
CLASSES: dict[Any, Any] = {}


def _class(value: Any) -> Any:
    return CLASSES.get(value, value) if isinstance(value, type) else value


def _member(value: Any) -> Any:
    """Return what identifies a member of an enum: its class's module, name and members, and its own name."""
    cls = type(value)
    if not isinstance(value, enum.Enum):
        return value
    return cls.__module__, cls.__qualname__, [(each.name, each.value) for each in cls], value.name


class Rules:
    """The operators of a function: by Numba's rules, or by NumPy's."""

    def __init__(self, *, numpy: bool) -> None:
        self.numpy = numpy
        self._compute = numpy_compute if numpy else compute
        self._compare = numpy_compare if numpy else compare
        self._unary = _numpy_unary if numpy else _numba_unary

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        """Give `left operator right`."""
        found = self._compute(operator, left, right)
        if found is not NotImplemented:
            return found
        if type_name(left) is not None and type_name(right) is not None:
            raise _unknown(operator, left, right)
        return PYTHON[operator](left, right)

    def power(self, left: Any, exponent: int) -> Any:
        """Give `left ** exponent`, whose exponent is a literal."""
        kind = type_name(left)
        if kind is not None and is_complex(kind) and 1 <= exponent <= 8:
            found = known_complex_power(left, exponent)
            return weakened(found) if self.numpy and is_weak(left) else found
        if self.numpy and kind is not None and is_weak(left) and is_integer(kind) and exponent < 0:
            return self.binary("pow", left, float(exponent))  # as for Python ints
        if self.numpy and kind is not None:
            return numpy_compute("pow", left, exponent, known=True)
        return self.binary("pow", left, exponent)

    def updated(self, operator: str, left: Any, right: Any) -> Any:
        """Give what `left operator= right` assigns; an array is changed where it is."""
        if isinstance(left, np.ndarray) and left.ndim > 0:
            return update(functools.partial(self.binary, operator), left, right)
        return self.binary(operator, left, right)

    def raised(self, left: Any, exponent: int) -> Any:
        """Give what `left **= exponent` assigns, whose exponent is a literal."""
        if isinstance(left, np.ndarray) and left.ndim > 0:
            return update(self.power, left, exponent)
        return self.power(left, exponent)

    def unary(self, operator: str, value: Any) -> Any:
        """Give `operator value`."""
        if type_name(value) is None:
            return _UNARY[operator](value)
        return self._unary(operator, value)

    def compare(self, operator: str, left: Any, right: Any) -> Any:
        """Give `left operator right` of a comparison."""
        if isinstance(left, tuple) and isinstance(right, tuple):
            return self._tuples(operator, left, right)
        found = self._compare(operator, left, right)
        left, right = _class(left), _class(right)
        return PYTHON[operator](left, right) if found is NotImplemented else found

    def _tuples(self, operator: str, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
        if operator in ("eq", "ne"):
            pairs = zip(left, right, strict=False)
            same = len(left) == len(right) and all(self.compare("eq", a, b) for a, b in pairs)
            return same == (operator == "eq")
        for a, b in zip(left, right, strict=False):
            if not self.compare("eq", a, b):
                return bool(self.compare(operator, a, b))
        return bool(PYTHON[operator](len(left), len(right)))

    def same(self, left: Any, right: Any) -> Any:
        """Give `left is right`, which compares numbers and tuples."""
        if isinstance(left, enum.Enum) or isinstance(right, enum.Enum):
            return left is right or _member(left) == _member(right)
        are_numbers = type_name(left) is not None and type_name(right) is not None
        if are_numbers or (isinstance(left, tuple) and isinstance(right, tuple)):
            return self.compare("eq", left, right)
        return _class(left) is _class(right)

    def other(self, left: Any, right: Any) -> Any:
        """Give `left is not right`."""
        return not self.same(left, right)

    def within(self, value: Any, items: Any) -> Any:
        """Give `value in items`."""
        if isinstance(items, tuple):
            return any(self.compare("eq", value, each) for each in items)
        if isinstance(items, np.ndarray):
            return any(self.compare("eq", value, items[at]) for at in np.ndindex(*items.shape))
        return value in items

    def beyond(self, value: Any, items: Any) -> Any:
        """Give `value not in items`."""
        return not self.within(value, items)

    def common(self, values: list[Any]) -> tuple[str, bool] | None:
        """Give the type that numbers have in common, and whether it has none of its own; None if one is no number."""
        found: tuple[str, bool] | None = None
        for value in values:
            kind = type_name(value)
            if kind is None:
                return None
            weak = self.numpy and is_weak(value)
            if found is None:
                found = kind, weak
            elif self.numpy:
                found = meet(*found, kind, weak)
            else:
                found = unify(found[0], kind), False
        return found

    def converted(self, value: Any, kind: str, *, weak: bool) -> Any:
        """Give a number as one of a type."""
        if weak:
            return weakened(value)
        if value.__class__ is SCALARS[kind]:
            return value
        found = SCALARS[kind](value)
        return Truth(found) if self.numpy and kind == "boolean" else found


RULES = {numpy: Rules(numpy=numpy) for numpy in (False, True)}


class Right(scalars.Decider):
    """The right operand of `a[i] += b`: it decides what the operator means."""

    def __init__(self, rules: Rules, value: Any) -> None:
        self.rules, self.value = rules, value


class Exponent(Right):
    """The right operand of `a[i] **= n`, with an integer literal."""

    def __rpow__(self, left: Any) -> Any:
        return self.rules.raised(left, self.value)


class Comparand(scalars.Decider):
    """A number in a chain of comparisons: it decides what they mean."""

    def __init__(self, rules: Rules, value: Any) -> None:
        self.rules, self.value = rules, value


def _reflected(operator: str) -> Callable[[Right, Any], Any]:
    return lambda self, left: self.rules.updated(operator, left, self.value)


def _compared_with(operator: str) -> Callable[[Comparand, Any], Any]:
    return lambda self, other: self.rules.compare(operator, self.value, other.value)


for _each in PYTHON:
    if _each in COMPARISONS:
        setattr(Comparand, f"__{_each}__", _compared_with(_each))
    else:
        setattr(Right, f"__r{_each}__", _reflected(_each))


def update(compute: Callable[[Any, Any], Any], target: Any, value: Any) -> Any:
    """Change an array where it is, element by element: to what is computed of each and of the value, or its element."""
    given = value
    if isinstance(value, np.ndarray) and value.ndim > 0:
        given = np.broadcast_to(np.asarray(value), target.shape).view(type(target))
    for at in np.ndindex(*target.shape):
        each = given[at[-1]] if isinstance(given, tuple) else given[at] if given is not value else value
        target[at] = compute(target[at], each)
    return target


def _updated(operator: str, target: Any, value: Any) -> Any:
    return RULES[False].updated(operator, target, value)


scalars.Operators.update = staticmethod(_updated)
