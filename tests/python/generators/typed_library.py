"""Types calls of functions added by `weft.cuda.extending` and of functions written in PTX, for `typed_rewrite.py`.

The types of a call's arguments select the implementation, as the `overload` function does. The implementation is then
an ordinary device function.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from generators.typed_values import Array, converted

if TYPE_CHECKING:
    from generators.typed_values import Type

CLASSES = {"Integer": "iu", "Float": "f", "Boolean": "b", "Complex": "c"}


class Library:
    """A module's additions: `overload` functions by name, and the types of functions written in PTX."""

    def __init__(self) -> None:
        self.overloads: dict[str, ast.FunctionDef] = {}
        self.methods: dict[str, ast.FunctionDef] = {}
        self.attributes: dict[str, ast.FunctionDef] = {}
        self.declared: dict[str, tuple[Type, ...]] = {}  # its result and its parameters

    def takes(self, node: ast.FunctionDef) -> bool:
        """Whether a definition selects an implementation, as `overload` does; records it if so."""
        for each in node.decorator_list:
            if not isinstance(each, ast.Call):
                continue
            name = ast.unparse(each.func)
            if name == "overload":
                self.overloads[each.args[0].id] = node
            elif name in ("overload_method", "overload_attribute"):
                kept = self.methods if name.endswith("method") else self.attributes
                kept[each.args[1].value] = node
            elif name in ("cuda.intrinsic", "cuda.declare_device"):
                signature = each.args[name.endswith("device")].value
                names = signature.rstrip(")").replace("(", ",").split(",")
                self.declared[node.name] = tuple(np.dtype(each.strip()) for each in names)
                node.decorator_list = [plain()]
                return False
            else:
                continue
            return True
        return False


def plain() -> ast.expr:
    """The decorator of a device function."""
    return ast.parse("cuda.jit(device=True)", mode="eval").body


class LibraryTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def library_call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr] | None:
        """A call of one of these; None for other functions."""
        library = self.functions.library
        if target in library.declared:
            return self.declared_call(target, node)
        if target in library.overloads:
            return self.call(self.chosen(library.overloads[target], node.args), node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in library.methods:
            args = [node.func.value, *node.args]
            chosen = self.chosen(library.methods[node.func.attr], args)
            return self.call(chosen, ast.Call(node.func, args, node.keywords))
        return None

    def library_attribute(self, node: ast.Attribute) -> tuple[Type, ast.expr] | None:
        """An attribute that was added to arrays."""
        choice = self.functions.library.attributes.get(node.attr)
        if choice is None:
            return None
        return self.call(self.chosen(choice, [node.value]), ast.Call(node, [node.value], []))

    def declared_call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr]:
        gives, *wanted = self.functions.library.declared[target]
        args = []
        for arg, want in zip(node.args, wanted, strict=True):
            ty, new = self.real(arg)
            if ty.kind == "f":
                raise TypeError("a float for an integer")
            args.append(converted(new, ty, want))
        special, result = self.functions.specialize(target, tuple(wanted))
        return gives, converted(ast.Call(ast.Name(special, ast.Load()), args, []), result, gives)

    def chosen(self, choice: ast.FunctionDef, args: list[ast.expr]) -> str:
        """The name of the implementation for some arguments. Does not evaluate them."""
        before = dict(self.env)
        types = [self.expr(arg)[0] for arg in args]
        self.env = before
        names = [arg.arg for arg in choice.args.args]
        found = implementation(choice.body, dict(zip(names, types, strict=False)), {})
        if found is None:
            raise TypeError(f"{choice.name} has nothing for {types}")
        name = f"{choice.name}_{found.lineno - choice.lineno}"
        self.functions.sources.setdefault(name, ast.FunctionDef(name, found.args, found.body, [plain()]))
        return name


def implementation(body: list[ast.stmt], types: dict[str, Type], known: dict) -> ast.FunctionDef | None:
    """The implementation that an `overload` function returns for some types."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            known[statement.name] = statement
        elif isinstance(statement, ast.Return):
            return known[statement.value.id]
        elif isinstance(statement, ast.If) and holds(statement.test, types):
            return implementation(statement.body, types, known)
    return None


def holds(test: ast.expr, types: dict[str, Type]) -> bool:
    """Whether a condition on types holds."""
    if isinstance(test, ast.BoolOp):
        return (all if isinstance(test.op, ast.And) else any)(holds(each, types) for each in test.values)
    if isinstance(test, ast.UnaryOp):
        return not holds(test.operand, types)
    if isinstance(test, ast.Compare):
        return types[test.left.id] == np.dtype(test.comparators[0].attr)
    of, among = test.args
    ty = types[of.value.id].dtype if isinstance(of, ast.Attribute) else types[of.id]
    if among.attr == "Array":
        return isinstance(ty, Array)
    return isinstance(ty, np.dtype) and ty.kind in CLASSES[among.attr]
