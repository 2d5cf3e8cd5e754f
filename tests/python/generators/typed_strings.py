"""Types strings, for `typed_rewrite.py`: elements of arrays of characters, slices, letters, literals."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from generators.typed_values import INT64, Array, Text

if TYPE_CHECKING:
    from generators.typed_values import Type

ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def letter(ty: Text) -> Type:
    """A letter of a `str` is a `str`, one of `bytes` an int."""
    return ty if ty.kind == "U" else INT64


class TextTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def text_item(self, ty: Text, value: ast.expr, index: ast.expr) -> tuple[Type, ast.expr]:
        """A letter, or a slice whose bounds are constants from the start on."""
        if isinstance(index, ast.Slice):
            return ty, ast.Subscript(value, index, ast.Load())
        taken, index = self.index(index)
        if taken != 1:
            raise TypeError("an index of a text")
        return letter(ty), ast.Subscript(value, index, ast.Load())

    def text_links(self, op: ast.cmpop, one: Type, two: Type) -> list | None:
        """The comparison of strings, which needs no further typing; None if these are no strings."""
        if not (isinstance(one, Text) or isinstance(two, Text)):
            return None
        inside = isinstance(op, (ast.In, ast.NotIn))
        same = one == two or (inside and isinstance(two, Text) and two.kind == "S" and one == INT64)
        if not same or not isinstance(op, (*ORDER, ast.In, ast.NotIn)):
            raise TypeError(f"comparison of {one} and {two}")
        return []

    def text_call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr] | None:
        """`ord` and `len` of a string."""
        if target not in ("ord", "len"):
            return None
        before = dict(self.env)
        ty, value = self.expr(node.args[0])
        if isinstance(ty, Text):
            return INT64, ast.Call(node.func, [value], [])
        if target == "ord":
            raise TypeError("ord of what is no text")
        self.env = before
        return None

    def stores_text(self, place: Type, ty: Type) -> bool:
        """Whether an element can hold a string."""
        if isinstance(place, Array) and isinstance(place.dtype, Text):
            place = place.dtype
        if not (isinstance(place, Text) or isinstance(ty, Text)):
            return False
        if place != ty:
            raise TypeError(f"{ty} into {place}")
        return True
