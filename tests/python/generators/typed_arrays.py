"""Types updates of views, functions of whole arrays with further parameters, ranges as sequences, and iterators, for
`typed_rewrite.py`. Each becomes a call of a function that only the oracle has (`oracle/arrays.py`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np
from oracle import numeric
from oracle.rewrite import OPERATORS

from generators.typed_sequences import item_type
from generators.typed_values import (
    BOOL,
    FLOAT64,
    INT64,
    NONE,
    Array,
    Sequence,
    converted,
    load,
    number_of,
    read_of,
    unify,
)

if TYPE_CHECKING:
    from generators.typed_values import Type

TOTALS = ("sum", "prod", "cumsum", "cumprod")
PARAMETERS = ("axis", "dtype", "out", "keepdims", "initial")


def own(name: str, *args: ast.expr) -> ast.expr:
    """A call of a function that only the oracle has."""
    return ast.Call(ast.Attribute(load("cuda"), f"own_{name}", ast.Load()), list(args), [])


def result_dtype(name: str, dtype: np.dtype) -> np.dtype:
    """The result type of a function of a whole array."""
    if name in TOTALS and dtype.kind in "iub":
        return np.dtype("uint64" if dtype.kind == "u" else "int64")
    if name == "mean":
        return FLOAT64 if dtype.kind in "iub" else dtype
    if name in ("argmin", "argmax", "count_nonzero"):
        return INT64
    return BOOL if name in ("any", "all") else dtype


class ArrayTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def update(self, node: ast.AugAssign) -> ast.stmt | None:
        """`a[1:] += b`; None if the target is no view."""
        if isinstance(node.target, ast.Attribute):
            return None
        before = dict(self.env)
        try:
            ty, place = self.expr(read_of(node.target))
        except TypeError:
            ty = None
        if not isinstance(ty, Array) or not isinstance(ty.dtype, np.dtype) or ty.dtype.kind not in "iufbc":
            self.env = before
            return None
        op = OPERATORS[type(node.op)]
        value_type, value = self.expr(node.value)
        items: tuple = (number_of(value_type),)
        if isinstance(value_type, Array):
            if value_type.ndim > ty.ndim:
                raise TypeError("more dimensions")
            items = (value_type.dtype,)
        elif isinstance(value_type, tuple):
            items = value_type
        for item in items:
            if not isinstance(item, np.dtype) or item.kind not in "iufbc":
                raise TypeError(f"{op} of views and {item}")
            if numeric.result_type(op, ty.dtype, item).kind == "c" != ty.dtype.kind:
                raise TypeError("complex numbers into real ones")
        return ast.Expr(own("update", place, ast.Constant(op), value))

    def reduced(self, name: str, ty: Type, value: ast.expr, node: ast.Call, args: list) -> tuple[Type, ast.expr]:
        """`np.sum(a, axis=0, out=b)` and similar calls; `args` are the arguments after the array."""
        if not isinstance(ty, Array) or not isinstance(ty.dtype, np.dtype) or ty.dtype.kind not in "iufbc":
            raise TypeError(f"{name} of {ty}")
        if ty.dtype.kind == "c" and name not in ("sum", "cumsum", "any", "all", "mean"):
            raise TypeError(f"{name} of complex numbers is not exact")
        given = {"axis": args[0]} if args else {}
        given |= {keyword.arg: keyword.value for keyword in node.keywords}
        if len(args) > 1 or set(given) - set(PARAMETERS):
            raise TypeError("another parameter")
        dtype = result_dtype(name, ty.dtype)
        if "dtype" in given:
            dtype = np.dtype(ast.unparse(given["dtype"]).removeprefix("np.").rstrip("_"))
            if dtype == np.dtype("float16") or (ty.dtype.kind == "c") > (dtype.kind == "c"):
                raise TypeError("a sum of another kind")
        if "initial" in given and self.number(given["initial"])[0].kind not in "iub":
            raise TypeError("a sum that starts with a float")
        parts = [given.get(each, ast.Constant(None)) for each in PARAMETERS]
        if "out" in given:
            out, parts[2] = self.expr(given["out"])
            axis = None if "axis" not in given else ast.literal_eval(given["axis"])
            less = 0 if "keepdims" in given or name.startswith("cum") else ty.ndim if axis is None else 1
            if out != Array(dtype, ty.ndim - less):
                raise TypeError(f"{out} for results")
            return out, own("reduced", ast.Constant(name), value, *parts)
        if "axis" in given or "keepdims" in given or name.startswith("cum"):
            raise TypeError("an array that is made")
        return dtype, own("reduced", ast.Constant(name), value, *parts)

    # Ranges and iterators.

    def range_attribute(self, ty: Sequence, value: ast.expr, name: str) -> tuple[Type, ast.expr]:
        if ty.kind != "range" or name not in ("start", "stop", "step"):
            raise TypeError(name)
        return ty.parts[0], ast.Attribute(value, name, ast.Load())

    def range_method(self, ty: Sequence, value: ast.expr, name: str, args: list) -> tuple[Type, ast.expr]:
        if ty.kind != "range" or name not in ("index", "count") or len(args) != 1:
            raise TypeError(name)
        _, item = self.real(args[0])
        return INT64, ast.Call(ast.Attribute(value, name, ast.Load()), [item], [])

    def range_item(self, ty: Sequence, value: ast.expr, index: ast.expr) -> tuple[Type, ast.expr]:
        if ty.kind != "range":
            raise TypeError("an item of an iterator")
        taken, index = self.index(index)
        return ty.parts[0] if taken else Sequence("range", (INT64,)), ast.Subscript(value, index, ast.Load())

    def iterator_call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr]:
        if target == "next" and isinstance(node.args[0], ast.GeneratorExp):
            turns = self.turns(node.args[0].generators, node.args[0].elt)
            return self.expr([*turns, *node.args[1:]][0])
        ty, value = self.expr(node.args[0])
        if target == "iter":
            if item_type(ty) is None:
                raise TypeError("an iterator over several types")
            return Sequence("iter", (ty,)), ast.Call(node.func, [value], [])
        if not isinstance(ty, Sequence) or ty.kind != "iter":
            raise TypeError("next of what is no iterator")
        item = item_type(ty)
        if not node.args[1:]:
            return item, own("next", value)
        other, default = self.expr_or_none(node.args[1])
        if other is NONE:
            raise TypeError("None for an item")
        found = unify(item, other)
        return found, converted(own("next", value, converted(default, other, found)), item, found)
