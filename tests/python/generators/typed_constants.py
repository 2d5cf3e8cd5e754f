"""Compile-time constants as weft finds them, for `typed_rewrite.py`: a constant condition drops a branch and its types.

An int or a bool is known if it is a literal, the folded result of an operator on known operands, or a variable that was
assigned one on every path. A value here is an int, a bool, a tuple of values, or None for an unknown value.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from oracle import numeric

if TYPE_CHECKING:
    from collections.abc import Callable

    from generators.typed_values import Env, Type

Value: TypeAlias = "int | bool | tuple[Value, ...] | None"

LEAST, MOST = -(2**63), 2**63 - 1
PLAIN = (ast.Constant, ast.Name, ast.NamedExpr, ast.UnaryOp, ast.BinOp, ast.Compare)
ORDER: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
FOLDED: dict[type[ast.operator], tuple[Callable[[int, int], int], Callable[[int], bool]]] = {
    ast.Add: (operator.add, lambda b: True),
    ast.Sub: (operator.sub, lambda b: True),
    ast.Mult: (operator.mul, lambda b: True),
    ast.FloorDiv: (operator.floordiv, lambda b: b != 0),
    ast.Mod: (operator.mod, lambda b: b != 0),
    ast.Pow: (operator.pow, lambda b: 0 <= b < 64),
    ast.LShift: (operator.lshift, lambda b: 0 <= b < 63),
    ast.RShift: (operator.rshift, lambda b: 0 <= b < 63),
    ast.BitAnd: (operator.and_, lambda b: True),
    ast.BitOr: (operator.or_, lambda b: True),
    ast.BitXor: (operator.xor, lambda b: True),
}


@dataclasses.dataclass(frozen=True)
class Known:
    """A variable's constant value, which the environment stores under `key(name)`."""

    value: Value = dataclasses.field(compare=False)
    text: str  # distinguishes True from 1


def key(name: str) -> str:
    """The environment's key for a variable's value; no variable has such a name."""
    return f"={name}"


def bind(env: dict, name: str, ty: object, value: Value = None) -> None:
    """Gives a variable a type, and a value if that is known."""
    env[name] = ty
    if value is not None or key(name) in env:
        env[key(name)] = Known(value, repr(value))


def common(first: Value, second: Value) -> Value:
    """The constants that are known where two paths join."""
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(common(*pair) for pair in zip(first, second, strict=True))
    return first if type(first) is type(second) and first == second else None


def meet(before: dict, one: dict, two: dict) -> Env:
    """The environment after one of two paths through an expression. Types are the same on both; known values differ."""
    out = {name: ty for name, ty in before.items() if not isinstance(ty, Known)}
    for name in before:
        at = key(name)
        if at in one and at in two:
            value = common(one[at].value, two[at].value)
            out[at] = Known(value, repr(value))
    return out


def compared(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """A comparison of known numbers."""
    if isinstance(left, int) and isinstance(right, int) and type(op) in ORDER:
        return ORDER[type(op)](left, right)
    return None


def plain(nodes: list[ast.expr]) -> bool:
    """Whether weft emits no statements for known expressions: then `x and y` is known if `y` is false."""
    parts = [part for node in nodes for part in ast.walk(node) if isinstance(part, ast.expr)]
    stored = {part.target for part in parts if isinstance(part, ast.NamedExpr)}
    return all(isinstance(part, PLAIN) and (part in stored or known(part) is not None) for part in parts)


def known(node: ast.expr) -> Value:
    """The known value of a typed expression."""
    return getattr(node, "known", None)


def known_value(node: ast.expr, ty: Type, env: dict) -> Value:
    """The known value of an expression, from those of its parts; that of a condition was found with its types."""
    find = FINDERS.get(node.__class__)
    return find(node, ty, env) if find else None


def known_subscript(node: ast.Subscript) -> Value:
    """An item of a known tuple."""
    items, index = known(node.value), node.slice
    if not isinstance(items, tuple):
        return None
    if isinstance(index, ast.Slice):
        bounds = (index.lower, index.upper, index.step)
        return items[slice(*(part and ast.literal_eval(part) for part in bounds))]
    at = known(index)
    if at is None:
        try:
            at = ast.literal_eval(index)
        except ValueError:
            return None
    return items[at]


def called(node: ast.Call) -> Value:
    """The result of a function of known numbers."""
    function = node.func
    if isinstance(function, ast.Name):
        return known_call(function.id, [known(arg) for arg in node.args])
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "np":
        return known_call(function.attr, [known(arg) for arg in node.args])
    return None


def tuple_value(items: list[ast.expr]) -> Value:
    """The known constants of a tuple's items."""
    values: list[Value] = []
    for item in items:
        if not isinstance(item, ast.Starred):
            values.append(known(item))
        elif isinstance(value := known(item.value), tuple):
            values += value
        else:
            return None
    return tuple(values)


def is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def folded(operand: int, result: int) -> Value:
    """The result of an operation on a known int. It wraps to its type; a uint64 that wraps becomes unknown."""
    if LEAST <= result <= MOST:
        return result
    return wrapped(result) if operand <= MOST else None


def wrapped(value: int) -> int:
    return (value - LEAST) % 2**64 + LEAST


def known_unary(node: ast.UnaryOp) -> Value:
    value = known(node.operand)
    if isinstance(node.op, ast.Not):
        return None if value is None else not value
    if not is_int(value):
        return None
    if isinstance(node.op, ast.UAdd):
        return value
    return folded(value, -value if isinstance(node.op, ast.USub) else ~value)


def known_binary(node: ast.BinOp, ty: Type) -> Value:
    left, right = known(node.left), known(node.right)
    if isinstance(ty, tuple) and hasattr(ty, "fields"):  # an object or a vector
        return None
    if isinstance(ty, tuple):  # one after the other
        if left is None and right is None:
            return None
        left = (None,) * (len(ty) - len(right)) if left is None else left
        return left + ((None,) * (len(ty) - len(left)) if right is None else right)
    if not (is_int(left) and is_int(right) and ty == np.dtype("int64") and type(node.op) in FOLDED):
        return None
    fold, able = FOLDED[type(node.op)]
    left, right = wrapped(left), wrapped(right)
    if not able(right):
        return None
    result = fold(left, right)
    return result if LEAST <= result <= MOST else None


def known_call(target: str, args: list[Value]) -> Value:
    if target in ("bool", "bool_"):
        return None if args[0] is None else bool(args[0])
    if target == "len" and isinstance(args[0], tuple):
        return len(args[0])
    if target == "round":
        return args[0]
    if not args or not all(is_int(arg) for arg in args):
        return None
    match target:
        case "int":
            return args[0]
        case "int64":
            return wrapped(args[0])
        case "abs":
            return folded(args[0], -args[0]) if args[0] < 0 else args[0]
        case "min":
            return min(args)
        case "max":
            return max(args)
    return None


def check(value: Value, ty: Type) -> None:
    """Checks that a known number's type by its value is its type by the typing rules."""
    if isinstance(value, int) and numeric.value(value).dtype != getattr(ty, "base", ty):  # of a member of an enum
        raise TypeError(f"{value} is no {ty}")


FINDERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: lambda node, ty, env: node.value if isinstance(node.value, int) and node.value >= LEAST else None,
    ast.Name: lambda node, ty, env: env[key(node.id)].value if key(node.id) in env else None,
    ast.NamedExpr: lambda node, ty, env: known(node.value),
    ast.Tuple: lambda node, ty, env: tuple_value(node.elts),
    ast.BinOp: lambda node, ty, env: known_binary(node, ty),
    ast.UnaryOp: lambda node, ty, env: known_unary(node),
    ast.Attribute: lambda node, ty, env: known(node.value) if node.attr == "real" else None,
    ast.Subscript: lambda node, ty, env: known_subscript(node),
    ast.Call: lambda node, ty, env: called(node),
}
