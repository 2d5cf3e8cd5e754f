"""The types that the compiler finds for the expressions of a kernel, for kernels that CPython runs.

Where values of several types merge, compiled code has one common type: a variable after an `if`, both sides of
`a if c else b`, the value that a function returns. CPython's value is converted to that type. A function that is called
with several types has conversions for each call. An expression that has several types, in a loop over a tuple, has no
conversion.
"""

from __future__ import annotations

import ast
import contextlib

import numpy as np

from weft import _weft
from weft.cuda._cpython.operators import RULES, strengthened, weakened
from weft.cuda._cpython.scalars import SCALARS, type_name
from weft.errors import CompileError, SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _Location = tuple[int, int, int, int]
    # A type, and whether it is that of a weakly typed number.
    _Kind = tuple[_weft.Type, bool]
    _Row = tuple[int, _weft.Type, bool]

# Expressions that select one of their operands, which may have any type.
_SELECTIONS = (ast.Name, ast.IfExp, ast.BoolOp, ast.Call)
_CONVERTERS: dict[tuple[str, bool, bool], Any] = {}


class Expressions:
    """The types of the expressions of a launch."""

    def __init__(self, dispatcher: _weft.Dispatcher | None = None, args: tuple[_weft.Type, ...] = ()) -> None:
        instances: list[tuple[str, int, list[str | None]]] = []
        rows: list[tuple[int, tuple[int, int], tuple[int, int], _weft.Type, bool, str | None]] = []
        if dispatcher is not None:
            # A kernel that the compiler rejects still runs.
            with contextlib.suppress(CompileError, SourceError, TypeError, ValueError):
                instances, rows = _weft.expression_types(dispatcher, args)
        self.instances = instances
        # Keyed by the function's source location, then the expression's location; one entry per instance.
        self._types: dict[tuple[str, int], dict[_Location, list[_Row]]] = {}
        self._names: dict[tuple[str, int], dict[str, set[str]]] = {}
        self.weak: dict[int, list[bool]] = {}
        for instance, start, end, kind, weak, assigned in rows:
            file, line, _ = instances[instance]
            places = self._types.setdefault((file, line), {})
            places.setdefault((*start, *end), []).append((instance, kind, weak))
            if assigned is not None:
                names = self._names.setdefault((file, line), {})
                names.setdefault(assigned, set()).add(f"{kind} {weak}")
                # The first entries are the parameters, in order.
                self.weak.setdefault(instance, []).append(weak)

    def of(self, file: str, line: int, args: tuple[Any, ...], *, numpy: bool) -> Function:
        """Return the types of a function, by the position of its source and the arguments of a call."""
        fitting = {
            at
            for at, (name, first, types) in enumerate(self.instances)
            if (name, first) == (file, line) and (not types or _fit(args, types))
        }
        return Function(
            self._types.get((file, line), {}), self._names.get((file, line), {}), fitting, self, numpy=numpy
        )


class Function:
    """The types of the expressions of a function, for the types of its arguments."""

    def __init__(
        self,
        types: dict[_Location, list[_Row]],
        names: dict[str, set[str]],
        fitting: set[int],
        whole: Expressions,
        *,
        numpy: bool,
    ) -> None:
        self._types, self._names, self._fitting, self._numpy = types, names, fitting, numpy
        self._weak, self._instances = whole.weak, whole.instances

    @property
    def key(self) -> Any:
        """A key: two objects with equal keys have the same conversions."""
        found = {place: self._kind(place) for place in self._types}
        rows = tuple((place, str(kind[0]), kind[1]) for place, kind in found.items() if kind is not None)
        several = [place for place, kind in found.items() if kind is None]
        types = [(place, i, str(kind), weak) for place in several for i, kind, weak in self._types[place]]
        return self._numpy, rows, tuple((*row, tuple(self._instances[row[1]][2])) for row in types)

    def _kind(self, place: _Location) -> _Kind | None:
        """Give the type of an expression, if it has one: in a loop over a tuple it may have several."""
        known = self._types.get(place)
        if known is None:
            return None
        rows = [row for row in known if row[0] in self._fitting] or known
        _, kind, weak = rows[0]
        return (kind, weak) if len({(str(kind), weak) for _, kind, weak in rows}) == 1 else None

    def several(self, node: ast.expr) -> Callable[[tuple[Any, ...], Any], Any] | None:
        """Give what converts the value of an expression in an inner function that is called with several types.

        It takes the arguments of the call, too. None where the expression has one type, or none.
        """
        if not self._numpy and not isinstance(node, _SELECTIONS):
            return None
        place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        rows = self._types.get(place, [])
        if len(rows) < 2 or self._kind(place) is not None:
            return None
        instances, numpy = self._instances, self._numpy

        def convert(args: tuple[Any, ...], value: Any) -> Any:
            fitting = [row for row in rows if _fit(args, instances[row[0]][2])]
            if len({(str(kind), weak) for _, kind, weak in fitting}) != 1:
                return value
            made = converter(fitting[0][1], fitting[0][2], numpy=numpy)
            return value if made is None else made(value)

        return convert

    def conversion(self, node: ast.expr) -> Callable[[Any], Any] | None:
        """Return the function that converts the value of an expression; None if it needs no conversion."""
        if not self._numpy and not isinstance(node, _SELECTIONS):
            return None
        kind = self._kind((node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0))
        if kind is None:
            return None
        if (
            isinstance(node, ast.Name)
            and not self._numpy
            and self._names.get(node.id, set()) <= {f"{kind[0]} {kind[1]}"}
        ):
            return None  # all assigned values have the type
        return converter(*kind, numpy=self._numpy)

    def argument(self, at: int, value: Any) -> Any:
        """Give an argument of the call as the function has it: a number with a type of its own, or without."""
        if type_name(value) is None:
            return value
        weak = {self._weak[instance][at] for instance in self._fitting if at < len(self._weak.get(instance, ()))}
        if len(weak) != 1:
            return value
        return weakened(value) if weak.pop() else strengthened(value)


def _text(arg: Any) -> str | None:
    """Give the type of a number, or of a tuple of them, as messages write it; None for all else."""
    if not isinstance(arg, tuple) or hasattr(arg, "_fields"):
        return type_name(arg)
    items = [_text(item) for item in arg]
    if not items or None in items:
        return None
    names = [str(item) for item in items]
    return f"UniTuple({names[0]} x {len(names)})" if len(set(names)) == 1 else f"Tuple({', '.join(names)})"


def _fit(args: tuple[Any, ...], types: list[str | None]) -> bool:
    """Return whether arguments can have the types of an instance."""
    for arg, kind in zip(args, types, strict=False):
        text = _text(arg)
        if kind is None or arg is None:
            continue
        if text is not None or kind in SCALARS:
            if text != kind and not kind.startswith("Optional("):
                return False
        elif kind.startswith("array(") and isinstance(arg, np.ndarray) and arg.dtype.names is None:
            shown = f"{'bool' if arg.dtype.kind == 'b' else arg.dtype}, {arg.ndim}d"
            if not kind.startswith((f"array({shown}", f"array(unaligned {shown}")):
                return False
    return True


def converter(kind: _weft.Type, weak: bool, *, numpy: bool) -> Callable[[Any], Any] | None:
    """Return the function that converts values to a type; None if they need no conversion."""
    key = (str(kind), weak, numpy)
    if key not in _CONVERTERS:
        _CONVERTERS[key] = _converter(kind, weak, numpy=numpy)
    made: Callable[[Any], Any] | None = _CONVERTERS[key]
    return made


def _converter(kind: _weft.Type, weak: bool, *, numpy: bool) -> Callable[[Any], Any] | None:
    text, rules = str(kind), RULES[numpy]
    if text in SCALARS:

        def to_number(value: Any) -> Any:
            return value if type_name(value) is None else rules.converted(value, text, weak=weak)

        return to_number
    if kind.kind == "optional":
        return converter(kind.type, weak, numpy=numpy)  # None if it is not a number
    if kind.kind in ("tuple", "unituple"):
        items = [converter(each, False, numpy=numpy) for each in kind]
        if not any(items):
            return None

        def to_tuple(value: Any) -> Any:
            if not isinstance(value, tuple) or len(value) != len(items):
                return value
            parts = [each if item is None else item(each) for each, item in zip(value, items, strict=True)]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)

        return to_tuple
    return None
