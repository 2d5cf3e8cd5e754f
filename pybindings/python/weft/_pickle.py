"""Pickling of jitted functions: by reference where another process can import them, else by value.

By value means: the function's text, the values of the names that its body reads, those of its parameters' defaults, and
its options. A module among those values goes by its name. Nothing that Python evaluated when it made the function is
evaluated again.

A function is made first and gets its values then, so that functions which call each other can be pickled. A process to
which equal functions come again and again, as with each task of a pool, has one of them: what it has compiled counts
for all. Equal are functions of one text, with equal options and values.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import sys
import types
import weakref
from collections import deque

from weft import _source
from weft._weft import Dispatcher, Signature, Type, free_names
from weft.cuda._kernel_names import KernelName
from weft.errors import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from weft._weft import ForAll, Kernel, PreparedLaunch, _LaunchConfiguration

_KEPT = 128
"""The number of functions received by value that are cached for later ones if there is no other reference to them."""

_LARGEST = 1 << 20
"""Arrays of more bytes are not compared: functions with such values are no one's equals."""

_made: weakref.WeakValueDictionary[str, Dispatcher] = weakref.WeakValueDictionary()
_recent: deque[Dispatcher] = deque(maxlen=_KEPT)

# The check whether a source belongs to a function takes milliseconds, and a pool repeats it for each task.
_texts: weakref.WeakKeyDictionary[Any, tuple[str, str]] = weakref.WeakKeyDictionary()


# --- Jitted functions -------------------------------------------------------------------------------------------------


def reduce_dispatcher(dispatcher: Dispatcher) -> str | tuple[Any, ...]:
    """Reduces a jitted function, as ``__reduce__`` does."""
    name = _importable(dispatcher)
    if name is not None:
        return name
    function = dispatcher.py_func
    if dispatcher.backward is not None:
        from weft.cuda._derivatives import custom_vjp

        signatures, source = dispatcher.declared_signatures, dispatcher.given_source
        own = Dispatcher(function, dispatcher.targetoptions, signatures, source, dispatcher.cached_source)
        return custom_vjp, (own, dispatcher.backward)
    made = function.__name__, function.__module__, *_text(dispatcher)
    equals = _equals(dispatcher)
    create = made, dict(dispatcher.targetoptions), dispatcher.declared_signatures, equals
    return create_dispatcher, create, (*_state(dispatcher), equals), None, None, fill_dispatcher


def create_dispatcher(
    made: tuple[str, str, str, str], options: dict[str, Any], signatures: list[Signature], equals: str | None
) -> Dispatcher:
    """Make a jitted function from its text again, without its values; or give one that is equal.

    Parameters
    ----------
    made
        The name, the module, the file and the text.
    options
        The options of ``cuda.jit``.
    signatures
        The declared signatures.
    equals
        A digest of all that it is, or None.
    """
    if equals is not None and (known := _made.get(equals)) is not None:
        return known
    function = create_function(made)
    dispatcher = Dispatcher(function, options, signatures, made[3])
    function.__globals__[function.__name__] = dispatcher
    return dispatcher


def fill_dispatcher(dispatcher: Dispatcher, state: tuple[Any, ...]) -> None:
    """Give a function that `create_dispatcher` made the values of its names and of its defaults."""
    *rest, equals = state
    if equals is not None and _made.get(equals) is dispatcher:
        return
    fill_function(dispatcher.py_func, *rest)  # type: ignore[arg-type]  # it made it of such a function
    if equals is not None:
        _made[equals] = dispatcher
        _recent.append(dispatcher)


def reduce_host(dispatcher: Any) -> str | tuple[Any, ...]:
    """Reduces a function of `numba.njit` where numba is not installed, as ``__reduce__`` does."""
    name = _importable(dispatcher)
    if name is not None:
        return name
    function = dispatcher.py_func
    made = function.__name__, function.__module__, *_text(dispatcher)
    create = type(dispatcher), made, dispatcher.targetoptions
    return create_host, create, _state(dispatcher), None, None, fill_host


def create_host(kind: type, made: tuple[str, str, str, str], options: dict[str, Any]) -> Any:
    """Make a function of `numba.njit` from its text again, without its values."""
    import linecache

    name, module, file, text = made
    # Kernels that call it find its source in `linecache`, like that of notebook cells.
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = f"<{name} of {file.strip('<>')}, {digest}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    function = create_function((name, module, file, text))
    dispatcher = kind(function, options)
    function.__globals__[name] = dispatcher
    return dispatcher


def fill_host(dispatcher: Any, state: tuple[Any, ...]) -> None:
    """Give a function that `create_host` made the values of its names and of its defaults."""
    fill_function(dispatcher.py_func, *state)


def create_function(made: tuple[str, str, str, str]) -> types.FunctionType:
    """Make a Python function of its name, its module, its file and its text."""
    import ast

    name, module, file, text = made
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
    exec(compile(ast.Module([definition], []), file, "exec"), scope)
    function: types.FunctionType = scope[name]
    return function


def fill_function(
    function: types.FunctionType, values: dict[str, Any], positional: tuple[Any, ...], keyword: dict[str, Any]
) -> None:
    """Give a function the values of its names and of its defaults."""
    function.__globals__.update((key, _unpack(value)) for key, value in values.items())
    function.__defaults__ = tuple(map(_unpack, positional)) or None
    function.__kwdefaults__ = {key: _unpack(value) for key, value in keyword.items()} or None


def _importable(dispatcher: Any) -> str | None:
    """Give the name under which another process finds a function in its module, if it does."""
    function = dispatcher.py_func
    module: str = function.__module__
    # In a process that `multiprocessing` has started, the parent's `__main__` has the second name.
    if module in ("__main__", "__mp_main__") or _goes_by_value(module):
        return None
    found: Any = sys.modules.get(module)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    name: str = function.__qualname__
    return name if found is dispatcher else None


def _goes_by_value(module: str) -> bool:
    """Whether a program has registered with cloudpickle that other processes do not have a module."""
    cloudpickle = sys.modules.get("cloudpickle")
    if cloudpickle is None:
        return False
    registered: set[str] = cloudpickle.list_registry_pickle_by_value()
    return any(module == name or module.startswith(name + ".") for name in registered)


def _text(dispatcher: Any) -> tuple[str, str]:
    """Give the file and the text of a function of weft's, or of numba's."""
    found = _texts.get(dispatcher)
    if found is None:
        given, kept = getattr(dispatcher, "given_source", None), getattr(dispatcher, "cached_source", None)
        file, text, _, _ = _source.of(dispatcher.py_func, given, kept)
        found = _texts[dispatcher] = file, text
    return found


def _values(dispatcher: Any) -> Iterator[tuple[str, Any]]:
    """Give the names that a function's body reads and their values; names without a value are left out."""
    function = dispatcher.py_func
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    class_ = _source.enclosing_class(function.__code__)
    # Host functions may use syntax that weft does not parse.
    names = free_names(*_text(dispatcher)) if isinstance(dispatcher, Dispatcher) else _names_of(function.__code__)
    # The copy is not defined in a class, so private names in its source are not mangled.
    for name in names:
        found = _source.mangled(name, class_)
        if name == function.__name__:
            continue
        if found in cells:
            # A variable that was never assigned has an empty cell, and remains without a value.
            with contextlib.suppress(ValueError):
                yield name, cells[found].cell_contents
        elif found in function.__globals__:
            yield name, function.__globals__[found]


def _names_of(code: types.CodeType) -> list[str]:
    """Give the names that code reads of those around its function."""
    import dis

    names = list(code.co_freevars)
    names += [found.argval for found in dis.get_instructions(code) if found.opname == "LOAD_GLOBAL"]
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names += [name for name in _names_of(inner) if name not in inner.co_freevars]
    return list(dict.fromkeys(names))


def _state(dispatcher: Any) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    function = dispatcher.py_func
    values = {name: _pack(value) for name, value in _values(dispatcher)}
    positional = tuple(map(_pack, function.__defaults__ or ()))
    keyword = {name: _pack(value) for name, value in (function.__kwdefaults__ or {}).items()}
    return values, positional, keyword


class _Module:
    """A module by its name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _pack(value: Any) -> Any:
    # Modules with their own `__reduce__` are those of weft.numba.
    plain = isinstance(value, types.ModuleType) and type(value).__reduce__ is object.__reduce__
    return _Module(value.__name__) if plain else value


def _unpack(value: Any) -> Any:
    import importlib

    return importlib.import_module(value.name) if isinstance(value, _Module) else value


# --- Equality of functions --------------------------------------------------------------------------------------------


class _Incomparable(Exception):
    """A value of which it is not known what it is equal to."""


def _equals(dispatcher: Dispatcher) -> str | None:
    """Give a digest of all that a function is; None if a value of it is not compared, or a text not to be found."""
    try:
        content = _content(dispatcher, {})
    except (_Incomparable, SourceError):
        return None
    return hashlib.sha256(repr(content).encode()).hexdigest()


def _content(value: Any, seen: dict[int, int]) -> Any:
    """Return nested tuples of strings, bytes and numbers that are equal for equal values.

    Parameters
    ----------
    value
        The value.
    seen
        The functions that were met, by identity, with their numbers: they may refer to each other.
    """
    import numpy as np

    if isinstance(value, (bool, int, float, complex, str, bytes, types.NoneType)):
        return type(value).__qualname__, repr(value)
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if isinstance(value, (np.generic, np.dtype, Type, Signature)):
        return "pickle", pickle.dumps(value, 5)
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray or value.dtype.hasobject or value.nbytes > _LARGEST:
            raise _Incomparable
        return "array", pickle.dumps(value, 5)
    if type(value) in (tuple, list):
        return type(value).__qualname__, tuple(_content(item, seen) for item in value)
    if type(value) is dict:
        return "dict", tuple((_content(key, seen), _content(item, seen)) for key, item in value.items())
    if isinstance(value, KernelName):
        return "kernel name", value._weft_path
    if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType):
        return "name", value.__module__, value.__qualname__
    if isinstance(value, np.ufunc):
        name = str(value.__name__)
        if getattr(np, name, None) is value:
            return "name", "numpy", name
    # Functions of `njit` may also be compiled for kernels.
    if isinstance(getattr(value, "py_func", None), types.FunctionType) and hasattr(value, "targetoptions"):
        return _content_of_function(value, seen)
    if isinstance(value, (type, types.FunctionType)) and _is_named(value):
        return "name", value.__module__, value.__qualname__
    raise _Incomparable


def _content_of_function(dispatcher: Any, seen: dict[int, int]) -> Any:
    function = dispatcher.py_func
    if _importable(dispatcher) is not None:
        return "name", function.__module__, function.__qualname__
    if id(dispatcher) in seen:
        return "again", seen[id(dispatcher)]
    seen[id(dispatcher)] = len(seen)
    # The contents of linked files and objects are not compared.
    is_declared = isinstance(dispatcher, Dispatcher) and type(dispatcher) is not Dispatcher
    if is_declared or dispatcher.targetoptions.get("link"):
        raise _Incomparable
    return (
        *("function", type(dispatcher).__qualname__, function.__name__, function.__module__, *_text(dispatcher)),
        _content(dict(dispatcher.targetoptions), seen),
        _content(list(getattr(dispatcher, "declared_signatures", ())), seen),
        _content(dict(_values(dispatcher)), seen),
        _content(function.__defaults__, seen),
        _content(function.__kwdefaults__, seen),
    )


def _is_named(value: type | types.FunctionType) -> bool:
    """Whether a class or a function is what its module has under its name."""
    found: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value and value.__module__ not in ("__main__", "__mp_main__")


# --- Unpickling -------------------------------------------------------------------------------------------------------


def rebuild_kernel(dispatcher: Dispatcher, signature: Signature) -> Kernel:
    """Compile a kernel again, or find it in this process."""
    return dispatcher.compile(signature)


def rebuild_launcher(
    dispatcher: Dispatcher,
    griddim: tuple[int, ...],
    blockdim: tuple[int, ...],
    sharedmem: int,
    cluster: tuple[int, ...] | None = None,
) -> _LaunchConfiguration:
    """Configure a kernel again."""
    return dispatcher.configure(griddim, blockdim, 0, sharedmem, cluster=cluster)


def rebuild_prepared(
    dispatcher: Dispatcher,
    griddim: list[int],
    blockdim: list[int],
    sharedmem: int,
    cluster: list[int] | None,
    args: tuple[Any, ...],
) -> PreparedLaunch:
    """Read the arguments of a launch again."""
    shape = None if cluster is None else tuple(cluster)
    return rebuild_launcher(dispatcher, tuple(griddim), tuple(blockdim), sharedmem, shape).prepare(*args)


def rebuild_forall(dispatcher: Dispatcher, ntasks: int, thread_per_block: int, sharedmem: int) -> ForAll:
    """Make a launch over a number of threads again."""
    return dispatcher.forall(ntasks, thread_per_block, 0, sharedmem)
