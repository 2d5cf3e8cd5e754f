"""The types of `typed_rewrite.py`: what they are, how they join, and how values are converted."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from typing import TypeAlias

import numpy as np
from oracle import numeric

BOOL, INT32, INT64, UINT64, FLOAT64 = (np.dtype(name) for name in ("bool", "int32", "int64", "uint64", "float64"))
FLOAT32, COMPLEX64, COMPLEX128 = (np.dtype(name) for name in ("float32", "complex64", "complex128"))
NOTHING = ()  # the type of a call that returns nothing


@dataclasses.dataclass(frozen=True)
class Array:
    """The type of an array."""

    dtype: np.dtype
    ndim: int


ATOMIC = {np.dtype(name) for name in ("int32", "uint32", "int64", "uint64", "float32", "float64")}

Type: TypeAlias = "np.dtype | Array | tuple[Type, ...]"
Env: TypeAlias = "dict[str, Type] | None"  # None: this place is not reached


def unify(*types: Type) -> Type:
    """The common type of one or more; TypeError if there is none, or if it depends on their order."""
    distinct = list(dict.fromkeys(types))
    if len(distinct) == 1:
        return distinct[0]
    if all(isinstance(ty, tuple) for ty in distinct):
        return tuple(unify(*items) for items in zip(*distinct, strict=True))
    if not all(isinstance(ty, np.dtype) for ty in distinct):
        raise TypeError(f"no common type of {distinct}")
    found = set()
    for order in itertools.permutations(distinct):
        joined = order[0]
        for ty in order[1:]:
            joined = numeric.unify(joined, ty)
        found.add(joined)
    if len(found) > 1:
        raise TypeError(f"{distinct} unify differently in another order")
    return found.pop()


def join(*envs: Env) -> Env:
    """The variables that every reached place has, with their common types."""
    reached = [env for env in envs if env is not None]
    if not reached:
        return None
    names = [name for name in reached[0] if all(name in env for env in reached)]
    return {name: unify(*(env[name] for env in reached)) for name in names}


def name_of(dtype: np.dtype) -> str:
    """The dtype's name in a kernel."""
    return "bool_" if dtype == BOOL else dtype.name


def converted(node: ast.expr, have: Type, want: Type) -> ast.expr:
    """An expression for `node`, of type `have`, as a `want`."""
    if have == want:
        return node
    if isinstance(want, np.dtype):
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name_of(want), ast.Load()), [node], [])
    items = []
    for position, (before, after) in enumerate(zip(have, want, strict=True)):
        item = node.elts[position] if isinstance(node, ast.Tuple) else None
        if item is None:
            item = ast.Subscript(node, ast.Constant(position), ast.Load())
            if not position and not isinstance(node, ast.Name):  # evaluated once: it may have effects
                name = f"_p{next(_names)}"
                item.value = ast.NamedExpr(ast.Name(name, ast.Store()), node)
                node = ast.Name(name, ast.Load())
        items.append(converted(item, before, after))
    return ast.Tuple(items, ast.Load())


_names = itertools.count()


def conversions(have: Env, want: Env) -> list[ast.stmt]:
    """Statements that give variables the types of another environment."""
    if have is None or want is None:
        return []
    return [
        ast.Assign([ast.Name(name, ast.Store())], converted(ast.Name(name, ast.Load()), have[name], ty))
        for name, ty in want.items()
        if have[name] != ty
    ]


def dotted(node: ast.expr) -> str:
    """`a.b.c`, or nothing."""
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def flattened(statements: list) -> list[ast.stmt]:
    """Statements of which some are lists of statements, and so on in their bodies."""
    out: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, list):
            out += flattened(statement)
            continue
        if hasattr(statement, "body"):
            statement.body = flattened(statement.body) or [ast.Pass()]
        if hasattr(statement, "orelse"):
            statement.orelse = flattened(statement.orelse)
        out.append(statement)
    return out
