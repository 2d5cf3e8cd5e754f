"""Pickling of jitted functions: by reference where another process can import them, else by value.

By value means: the function's text, the values of the names that its body reads, those of its parameters' defaults, and
its options. A module among those values goes by its name. Nothing that Python evaluated when it made the function is
evaluated again.
"""

from __future__ import annotations

import contextlib
import sys
import types

from weft import _source
from weft._weft import Dispatcher, free_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import _LaunchConfiguration


def reduce_dispatcher(dispatcher: Dispatcher) -> str | tuple[Any, ...]:
    """Reduces a jitted function, as ``__reduce__`` does."""
    function = dispatcher.py_func
    if function.__module__ != "__main__":
        found: Any = sys.modules.get(function.__module__)
        for part in function.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is dispatcher:
            name: str = function.__qualname__
            return name
    file, text, _, class_ = _source.of(function, dispatcher.given_source, dispatcher.kept_text)
    values = {}
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    # The copy stands in no class, so its text's private names are as written.
    for name in free_names(file, text):
        found = _source.mangled(name, class_)
        if found in cells:
            # A variable that was never assigned has an empty cell, and stays without a value.
            with contextlib.suppress(ValueError):
                values[name] = _pack(cells[found].cell_contents)
        elif found in function.__globals__:
            values[name] = _pack(function.__globals__[found])
    values.pop(function.__name__, None)
    by_place = tuple(map(_pack, function.__defaults__ or ()))
    by_name = {name: _pack(value) for name, value in (function.__kwdefaults__ or {}).items()}
    options = dict(dispatcher.targetoptions)
    made = function.__name__, function.__module__, file, text
    return rebuild_dispatcher, (*made, values, by_place, by_name, options, dispatcher.declared_signatures)


def rebuild_dispatcher(
    name: str,
    module: str,
    file: str,
    text: str,
    values: dict[str, Any],
    by_place: tuple[Any, ...],
    by_name: dict[str, Any],
    options: dict[str, Any],
    signatures: list[Any],
) -> Dispatcher:
    """Make a jitted function from its text again."""
    import ast

    tree = ast.parse("if 1:\n" + text if text[:1].isspace() else text, file)
    definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    for parameter in (
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ):
        if parameter is not None:
            parameter.annotation = None
    arguments.defaults = []
    arguments.kw_defaults = [None for _ in arguments.kwonlyargs]
    scope: dict[str, Any] = {"__name__": module, "__builtins__": __builtins__}
    scope.update((key, _unpack(value)) for key, value in values.items())
    exec(compile(ast.Module([definition], []), file, "exec"), scope)
    function = scope[name]
    function.__defaults__ = tuple(map(_unpack, by_place)) or None
    function.__kwdefaults__ = {key: _unpack(value) for key, value in by_name.items()} or None
    dispatcher = Dispatcher(function, options, signatures, text)
    scope[name] = dispatcher
    return dispatcher


def rebuild_launcher(
    dispatcher: Dispatcher,
    griddim: tuple[int, ...],
    blockdim: tuple[int, ...],
    sharedmem: int,
    cluster: tuple[int, ...] | None = None,
) -> _LaunchConfiguration:
    """Configure a kernel again."""
    return dispatcher.configure(griddim, blockdim, 0, sharedmem, cluster=cluster)


class _Module:
    """A module by its name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _pack(value: Any) -> Any:
    return _Module(value.__name__) if isinstance(value, types.ModuleType) else value


def _unpack(value: Any) -> Any:
    import importlib

    return importlib.import_module(value.name) if isinstance(value, _Module) else value
