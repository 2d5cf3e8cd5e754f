"""Types calls of `cuda.coop`, for `typed_rewrite.py`: reductions, scans, sorts and exchanges.

A reduction's operator is specialized for its types, like any called function; a `lambda` becomes a function.
"""

from __future__ import annotations

import ast
import zlib
from typing import TYPE_CHECKING

import numpy as np
from oracle.collectives import FUNCTIONS, ITEMS, PAIRS, SCANS, parameters

from generators.typed_values import BOOL, INT32, NOTHING, Array

if TYPE_CHECKING:
    from generators.typed_values import Type

LITERALS = ("threads", "aggregate", "broadcast", "begin_bit", "end_bit")
EXTREMES = ("min", "max")


class CollectiveTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def collective(self, target: str, node: ast.Call) -> tuple[Type, ast.expr] | None:
        """A call of one of these; None for other functions."""
        if not target.startswith("cuda.coop."):
            return None
        _, _, kind, name = target.split(".")
        if name not in FUNCTIONS[kind]:
            raise TypeError(target)
        keys = [*parameters(kind, name)[: len(node.args)], *(keyword.arg for keyword in node.keywords)]
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        types: dict[str, Type] = {}
        new: dict[str, ast.expr] = {}
        for key, arg in zip(keys, given, strict=True):
            if key in ("op", "less"):
                new[key] = arg
            elif key in LITERALS:
                ast.literal_eval(arg)
                new[key] = arg
            else:
                types[key], new[key] = self.expr(arg)
        result = self.collected(name, types, {key: ast.literal_eval(new[key]) for key in keys if key in LITERALS})
        of = item_of(next(iter(types.values())))
        for key in ("op", "less"):
            if key in new:
                new[key], gives = self.operator(new[key], of)
                fits(gives, of if key == "op" else BOOL)
        if "initial" in types:
            fits(types["initial"], of)
        args = [new[key] for key in keys[: len(node.args)]]
        return result, ast.Call(node.func, args, [ast.keyword(key, new[key]) for key in keys[len(node.args) :]])

    @staticmethod
    def collected(name: str, types: dict[str, Type], literals: dict[str, object]) -> Type:
        """The result type of a call."""
        if "valid" in types and (not isinstance(types["valid"], np.dtype) or types["valid"].kind not in "iu"):
            raise TypeError("the number of threads is an integer")
        values = {key: ty for key, ty in types.items() if key in ITEMS}
        arrays = [isinstance(ty, Array) for ty in values.values()]
        if len(set(arrays)) > 1:
            raise TypeError("arrays and numbers")
        one, *more = (item_of(ty) for ty in values.values())
        sums, ordered = name.endswith("sum"), name in EXTREMES or name.startswith("radix") or "sort" in name
        if isinstance(one, tuple) and (sums or ordered):
            raise TypeError(f"{name} of a tuple")
        if ordered and one.kind == "c":
            raise TypeError(f"{name} of complex numbers")
        if name.startswith("radix") and one.kind == "b":
            raise TypeError("digits of a truth")
        if "items" in types:
            if not arrays[0]:
                raise TypeError("exchange of a number")
            return NOTHING
        if name not in SCANS and "sort" not in name:
            return INT32 if sums and one == BOOL and not arrays[0] else one
        if "sort" in name:
            return NOTHING if arrays[0] else (one, *more) if name in PAIRS else one
        one = INT32 if sums and one == BOOL and not arrays[0] else one
        if arrays[0]:
            return one if literals.get("aggregate") else NOTHING
        return (one, one) if literals.get("aggregate") else one

    def operator(self, node: ast.expr, of: Type) -> tuple[ast.expr, Type]:
        """The copy of a function for two values of a type, and its result type."""
        if isinstance(node, ast.Lambda):
            name = f"op_{zlib.crc32(ast.dump(node).encode())}"
            decorator = ast.parse("cuda.jit(device=True)", mode="eval").body
            body = [ast.Return(node.body)]
            self.functions.sources.setdefault(name, ast.FunctionDef(name, node.args, body, [decorator]))
        elif isinstance(node, ast.Name) and node.id in EXTREMES:
            if not isinstance(of, np.dtype) or of.kind == "c":
                raise TypeError(f"{node.id} of {of}")
            return node, of
        elif isinstance(node, ast.Name) and node.id in self.functions.sources:
            name = node.id
        else:
            raise TypeError("no function")
        special, gives = self.functions.specialize(name, (of, of))
        return ast.Name(special, ast.Load()), gives


def item_of(ty: Type) -> Type:
    """The type of a thread's value, or of its items."""
    if isinstance(ty, Array) and ty.ndim == 1 and isinstance(ty.dtype, np.dtype):
        return ty.dtype
    if not plain(ty):
        raise TypeError(f"a collective of {ty}")
    return ty


def plain(ty: Type) -> bool:
    """Whether threads can exchange it: numbers, and tuples of them."""
    if type(ty) is tuple:
        return bool(ty) and all(plain(item) for item in ty)
    return isinstance(ty, np.dtype) and ty.kind in "iufcb"


def fits(have: Type, want: Type) -> None:
    """TypeError if a value is not convertible to another type."""
    if isinstance(want, tuple):
        if not isinstance(have, tuple) or len(have) != len(want):
            raise TypeError(f"{have} does not become {want}")
        for pair in zip(have, want, strict=True):
            fits(*pair)
    elif not plain(have) or isinstance(have, tuple) or (have.kind == "c" and want.kind != "c"):
        raise TypeError(f"{have} does not become {want}")
