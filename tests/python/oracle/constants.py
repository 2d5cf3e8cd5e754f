"""Constant expressions as CPython's compiler folds them. Numba and weft see the folded values."""

from __future__ import annotations

import ast
import dis
import functools
import warnings

LITERALS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Subscript)
LOADS = {"RESUME", "LOAD_CONST", "LOAD_SMALL_INT", "RETURN_VALUE", "RETURN_CONST", "NOP"}


def folded(node: ast.expr) -> ast.Constant | ast.Tuple | None:
    """The constant that an expression is compiled to; None if it is a literal already, or computed at run time."""
    if not isinstance(node, (ast.UnaryOp, ast.BinOp, ast.Subscript)) or not of_literals(node):
        return None
    found = compiled(ast.unparse(node))
    return found and constant(found[0])


def of_literals(node: ast.expr) -> bool:
    """Whether an expression consists of literals and operators only."""
    rest = [node]
    while rest:
        node = rest.pop()
        if not isinstance(node, LITERALS):
            return False
        rest += [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return True


@functools.cache
def compiled(text: str) -> tuple[object] | None:
    """The one constant that the code of an expression loads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `1[0]`
        code = compile(text, "<constant>", "eval")
    if {step.opname for step in dis.get_instructions(code)} <= LOADS:
        return (eval(code),)
    return None


def constant(value: object) -> ast.Constant | ast.Tuple:
    """A literal of a value, tuples item by item."""
    if isinstance(value, tuple):
        return ast.Tuple([constant(item) for item in value], ast.Load())
    return ast.Constant(value)
