"""Types values that are None on some paths, for `typed_rewrite.py`: a test says whether a variable is None.

The oracle has the same values, including None. A value that is used in a computation goes through `cuda.own_there`,
which ends the thread if it is None.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from generators.typed_constants import bind
from generators.typed_values import BOOL, NONE, Optional, Sequence, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from generators.typed_values import Type

SAMENESS = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)


def facts_of(test: ast.expr, holds: bool) -> list[tuple[str, bool]]:
    """The variables that are None (True) or are not (False) if a test has this result."""

    def of_name(node: ast.expr, is_none: bool) -> list[tuple[str, bool]]:
        node = node.target if isinstance(node, ast.NamedExpr) else node
        return [(node.id, is_none)] if isinstance(node, ast.Name) else []

    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return facts_of(operand, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            return [fact for value in values for fact in facts_of(value, holds)]
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if isinstance(op, SAMENESS):
            return of_name(left, isinstance(op, (ast.Is, ast.Eq)) == holds)
        case ast.Name() | ast.NamedExpr() if holds:
            return of_name(test, False)
    return []


class OptionalTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def narrow(self, facts: list[tuple[str, bool]]) -> dict[str, tuple[Type, Type]]:
        """Narrows the types of variables by the result of a test. Returns their types before and after."""
        found: dict[str, tuple[Type, Type]] = {}
        for name, is_none in facts:
            if self.env is not None and isinstance(ty := self.env.get(name), Optional):
                bind(self.env, name, NONE if is_none else ty.of)
                found[name] = ty, self.env[name]
        return found

    def narrowed(self, facts: list[tuple[str, bool]], function: Callable, *args: object) -> object:
        """Calls a function with variables narrowed by a test, and restores their types."""
        changed = self.narrow(facts)
        result = function(*args)
        for name, (before, after) in changed.items():
            if self.env[name] == after:
                bind(self.env, name, before)
        return result

    def truth(self, node: ast.expr) -> tuple[Type, ast.expr]:
        """A condition."""
        ty, new = self.expr_or_none(node)
        return (BOOL, new) if isinstance(ty, (Optional, Text)) else self.as_number(ty, new, node)

    def given(self, node: ast.expr) -> tuple[Type, ast.expr]:
        """An item, a field or an argument. It must not be None on some paths only."""
        ty, new = self.expr_or_none(node)
        if isinstance(ty, Optional):
            raise TypeError("what may be None in something else")
        return ty, new

    def compared_operand(self, node: ast.Compare, operand: ast.expr) -> tuple[Type, ast.expr]:
        """An operand of a comparison, which may be None if the operator is `is` or compares for equality."""
        alone = len(node.ops) == 1 and isinstance(node.ops[0], SAMENESS)
        return self.expr_or_none(operand) if alone else self.expr(operand)

    def special_links(self, op: ast.cmpop, one: Type, two: Type) -> list[tuple[Type, Type]] | None:
        """The pairs that are compared where a value may be None, or is a range; None for other values."""
        if (found := self.text_links(op, one, two)) is not None:
            return found
        if isinstance(two, Sequence) and two.kind == "range":
            if isinstance(op, (ast.In, ast.NotIn)):
                return [(one, two.parts[0])]
            if isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(one, Sequence) and one.kind == "range":
                return []
        if not (isinstance(one, Optional) or isinstance(two, Optional)):
            return None
        if not isinstance(op, SAMENESS):
            raise TypeError("order of what may be None")
        if NONE in (one, two):
            return []
        return [tuple(ty.of if isinstance(ty, Optional) else ty for ty in (one, two))]
