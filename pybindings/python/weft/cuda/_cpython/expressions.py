"""The types that the compiler finds for the expressions of a kernel, for kernels that CPython runs.

Where values of several types meet, compiled code has one type for all of them: a variable after an `if`, both sides
of `a if c else b`, what a function returns. What CPython has there is converted to it. Where a function is called
with several types, the conversions are those of the call; where an expression has several types, in a loop over a
tuple, values stay as they are.
"""

from __future__ import annotations

import ast
import contextlib

from weft import _weft
from weft.cuda._cpython.operators import RULES, strengthened, weakened
from weft.cuda._cpython.scalars import SCALARS, type_name
from weft.errors import CompileError, SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _Place = tuple[int, int, int, int]
    # A type, and whether it is that of a number without one of its own; of an instance of a function.
    _Kind = tuple[_weft.Type, bool]
    _Row = tuple[int, _weft.Type, bool]

# What only gives one of the values that were computed for it, of whatever type.
_MEETINGS = (ast.Name, ast.IfExp, ast.BoolOp, ast.Call)
_CONVERTERS: dict[tuple[str, bool, bool], Any] = {}


class Expressions:
    """What is known of the expressions of a launch."""

    def __init__(self, dispatcher: _weft.Dispatcher | None = None, args: tuple[_weft.Type, ...] = ()) -> None:
        instances: list[tuple[str, int, list[str | None]]] = []
        rows: list[tuple[int, tuple[int, int], tuple[int, int], _weft.Type, bool, str | None]] = []
        if dispatcher is not None:
            # A kernel that the compiler cannot read runs all the same.
            with contextlib.suppress(CompileError, SourceError, TypeError, ValueError):
                instances, rows = _weft.expression_types(dispatcher, args)
        self._instances = instances
        # By the place of the function's text: by the expression's place: by instance.
        self._types: dict[tuple[str, int], dict[_Place, list[_Row]]] = {}
        self._names: dict[tuple[str, int], dict[str, set[str]]] = {}
        self._weak: dict[int, list[bool]] = {}
        for instance, start, end, kind, weak, assigned in rows:
            file, line, _ = instances[instance]
            places = self._types.setdefault((file, line), {})
            places.setdefault((*start, *end), []).append((instance, kind, weak))
            if assigned is not None:
                names = self._names.setdefault((file, line), {})
                names.setdefault(assigned, set()).add(f"{kind} {weak}")
                # Those of parameters come first, in their order.
                self._weak.setdefault(instance, []).append(weak)

    def of(self, file: str, line: int, args: tuple[Any, ...], *, numpy: bool) -> Function:
        """Give what is known of a function, by its text's place and the arguments of a call."""
        fitting = {
            at
            for at, (name, first, types) in enumerate(self._instances)
            if (name, first) == (file, line) and (not types or _fit(args, types))
        }
        return Function(
            self._types.get((file, line), {}), self._names.get((file, line), {}), fitting, self._weak, numpy=numpy
        )


class Function:
    """What is known of the expressions of a function, for the types of its arguments."""

    def __init__(
        self,
        types: dict[_Place, list[_Row]],
        names: dict[str, set[str]],
        fitting: set[int],
        weak: dict[int, list[bool]],
        *,
        numpy: bool,
    ) -> None:
        self._types, self._names, self._fitting, self._weak, self._numpy = types, names, fitting, weak, numpy

    @property
    def key(self) -> Any:
        """What two of which have in common that convert alike."""
        found = {place: self._kind(place) for place in self._types}
        rows = tuple((place, str(kind[0]), kind[1]) for place, kind in found.items() if kind is not None)
        return self._numpy, rows

    def _kind(self, place: _Place) -> _Kind | None:
        """Give the type of an expression, if it has one: in a loop over a tuple it may have several."""
        known = self._types.get(place)
        if known is None:
            return None
        rows = [row for row in known if row[0] in self._fitting] or known
        _, kind, weak = rows[0]
        return (kind, weak) if len({(str(kind), weak) for _, kind, weak in rows}) == 1 else None

    def conversion(self, node: ast.expr) -> Callable[[Any], Any] | None:
        """Give what converts the value of an expression; None for what stays."""
        if not self._numpy and not isinstance(node, _MEETINGS):
            return None
        kind = self._kind((node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0))
        if kind is None:
            return None
        if (
            isinstance(node, ast.Name)
            and not self._numpy
            and self._names.get(node.id, set()) <= {f"{kind[0]} {kind[1]}"}
        ):
            return None  # all that it is assigned has the type
        return converter(*kind, numpy=self._numpy)

    def argument(self, at: int, value: Any) -> Any:
        """Give an argument of the call as the function has it: a number with a type of its own, or without."""
        if type_name(value) is None:
            return value
        weak = {self._weak[instance][at] for instance in self._fitting if at < len(self._weak.get(instance, ()))}
        if len(weak) != 1:
            return value
        return weakened(value) if weak.pop() else strengthened(value)


def _fit(args: tuple[Any, ...], types: list[str | None]) -> bool:
    """Say whether arguments have the types of an instance, as far as their kinds tell."""
    for arg, kind in zip(args, types, strict=False):
        name = type_name(arg)
        if kind is None or (name is None and kind not in SCALARS):
            dtype = getattr(arg, "dtype", None)
            ndim = getattr(arg, "ndim", None)
            if kind is not None and kind.startswith("array(") and dtype is not None and ndim is not None:
                written = "bool" if kind.startswith("array(bool") else str(dtype)
                if dtype.names is None and not kind.startswith(
                    (f"array({written}, {ndim}d", f"array(unaligned {written}, {ndim}d")
                ):
                    return False
            continue
        if name != kind:
            return False
    return True


def converter(kind: _weft.Type, weak: bool, *, numpy: bool) -> Callable[[Any], Any] | None:
    """Give what converts values to a type; None for one whose values stay as they are."""
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
        return converter(kind.type, weak, numpy=numpy)  # None is no number
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
