"""What names mean in a kernel that CPython runs.

The function's own code runs, unchanged, with other globals: a dictionary that looks a name up in the module and gives
what it stands for in a kernel. So a debugger sees the file, the lines and the variables of the program.
"""

from __future__ import annotations

import builtins
import functools
import pdb
import sys
import types

import numpy as np

from weft import _weft, carray, farray
from weft.cuda._cpython import collectives, native, threads
from weft.cuda._cpython.arguments import choose, converted
from weft.cuda._cpython.arrays import (
    Array,
    array,
    cast_dtype,
    device_array,
    name_casts,
    shown,
    vector_of,
)
from weft.cuda._cpython.debugger import breakpoint_here, set_trace_here
from weft.cuda._cpython.names import NAMES, REGISTERS, VECTORS
from weft.cuda._cpython.scalars import SCALARS, number, plain, scalar
from weft.cuda._kernel_names import KernelName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    _Names = dict[str, Any]
else:
    _Names = dict

__all__ = ["collectives"]  # it has rows of NAMES

# ---- functions of Python's -----------------------------------------------------------------------------------------


class _Range:
    """A range, whose items are `int64`."""

    def __init__(self, *limits: Any) -> None:
        self._range = range(*(int(limit) for limit in limits))

    def __iter__(self) -> Iterator[Any]:
        return map(SCALARS["int64"], self._range)

    def __reversed__(self) -> Iterator[Any]:
        return map(SCALARS["int64"], reversed(self._range))

    def __len__(self) -> int:
        return len(self._range)

    def __contains__(self, item: Any) -> bool:
        return plain(item) in self._range

    def __getitem__(self, index: Any) -> Any:
        found = self._range[index]
        return _Range(found.start, found.stop, found.step) if isinstance(found, range) else SCALARS["int64"](found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Range) and self._range == other._range

    def __hash__(self) -> int:
        return hash(self._range)

    def __getattr__(self, name: str) -> Any:
        if name == "index":
            return lambda item: SCALARS["int64"](self._range.index(item) if item in self._range else -1)
        return number(getattr(self._range, name)) if name in ("start", "stop", "step") else getattr(self._range, name)

    def __repr__(self) -> str:
        return repr(self._range)


class _Int:
    """`int`: an `int64`."""

    def __new__(cls, value: Any = 0) -> Any:
        return SCALARS["uint64"](value) if type(value).__name__.startswith("uint") else SCALARS["int64"](value)


class _Float:
    """`float`: a `float64`, but of smaller floats, which stay what they are."""

    def __new__(cls, value: Any = 0.0) -> Any:
        if isinstance(value, (np.float32, np.float16)):
            return value
        return SCALARS["float64"](value)


class _Complex:
    """`complex`: a `complex128`."""

    def __new__(cls, real: Any = 0.0, imag: Any = 0.0) -> Any:
        return SCALARS["complex128"](real, imag)


class _Bool:
    """`bool`."""

    def __new__(cls, value: Any = False) -> Any:
        return bool(value)


_CLASSES: dict[Any, tuple[type, ...]] = {
    _Int: (int, np.integer),
    _Float: (float, np.floating),
    _Complex: (complex, np.complexfloating),
    _Bool: (bool,),
    _Range: (_Range,),
}
name_casts({_Int: "int64", _Float: "float64", _Complex: "complex128", _Bool: "bool"})


def _isinstance(value: Any, classes: Any) -> bool:
    each = classes if isinstance(classes, tuple) else (classes,)
    return any(isinstance(value, _CLASSES.get(cls) or cls) for cls in each)


def _extreme(name: str) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        if kwargs:
            return getattr(builtins, name)(values, **kwargs)
        if not values:
            return SCALARS["int64"](0)
        result = values[0]
        for value in values[1:]:
            if (result != result and len(args) > 1) or (value < result if name == "min" else value > result):
                result = value
        return result

    return extreme


def _enumerate(items: Any, start: Any = 0) -> Iterator[Any]:
    return ((SCALARS["int64"](at), item) for at, item in enumerate(items, int(start)))


def _import(name: str, *args: Any) -> Any:
    return meaning(builtins.__import__(name, *args))


class _Builtins(_Names):
    """Python's functions as kernels have them."""

    def __getitem__(self, name: str) -> Any:
        return breakpoint_here() if name == "breakpoint" else super().__getitem__(name)


BUILTINS = _Builtins(vars(builtins))
BUILTINS.update(
    {
        "range": _Range,
        "int": _Int,
        "float": _Float,
        "complex": _Complex,
        "bool": _Bool,
        "isinstance": _isinstance,
        "min": _extreme("min"),
        "max": _extreme("max"),
        "enumerate": _enumerate,
        "__import__": _import,
    }
)


# ---- modules -------------------------------------------------------------------------------------------------------


class _Module:
    """A module of whose members kernels see what they mean there."""

    def __init__(self, module: types.ModuleType) -> None:
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_module"]
        if module is pdb and name == "set_trace":
            return set_trace_here()
        if module.__name__ in ("math", "cmath") and not hasattr(module, name):
            return functools.partial(_native, None, f"{module.__name__}.{name}")  # of a newer Python
        value = getattr(module, name)
        special = _special(module, name, value)
        return meaning(value) if special is None else special

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])

    def __repr__(self) -> str:
        return repr(self.__dict__["_module"])


# What rounds nothing: NumPy gives the very same.
_EXACT = {"sqrt", "fabs", "floor", "ceil", "trunc", "copysign", "isnan", "isinf", "isfinite"}


@functools.cache
def _of_math(name: str) -> Any:
    import math

    function = getattr(math, name)
    if name not in _EXACT:
        return functools.partial(_native, function, f"math.{name}")
    ufunc = getattr(np, name)

    def exact(*args: Any) -> Any:
        values = [_real(arg) for arg in args]
        if any(isinstance(value, np.float16) for value in values):
            return _native(function, f"math.{name}", *args)
        with np.errstate(all="ignore"):
            return scalar(ufunc(*values))

    return exact


def _real(value: Any) -> Any:
    value = plain(value)
    return value if isinstance(value, (np.float32, np.float64, np.float16)) else np.float64(value)


def _native(function: Any, what: str, *args: Any, **kwargs: Any) -> Any:
    return native.call(function, args, kwargs, what)


@functools.cache
def _of_numpy(name: str) -> Any:
    function = getattr(np, name)
    if not callable(function) or isinstance(function, type):
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [_unwrapped(arg) for arg in args]
        named = {key: _unwrapped(arg) for key, arg in kwargs.items()}
        with np.errstate(all="ignore"):
            result = function(*values, **named)
            if isinstance(result, np.floating) and values and all(isinstance(v, (int, np.integer)) for v in values):
                result = function(*(np.float64(value) for value in values), **named)
        return _wrapped(result)

    return call


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Array):
        return np.asarray(value)
    if isinstance(value, tuple):
        return tuple(_unwrapped(item) for item in value)
    return cast_dtype(value) if isinstance(value, type) else plain(value)


def _wrapped(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_wrapped(item) for item in value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return scalar(value[()])
    return shown(value)


def _special(module: types.ModuleType, name: str, value: Any) -> Any:
    """Give what a member of math, cmath or NumPy is in a kernel; None for what is not special."""
    if module.__name__ == "math" and callable(value):
        return _of_math(name)
    if module.__name__ == "cmath" and callable(value):
        return functools.partial(_native, value, f"cmath.{name}")
    if module is np and name not in SCALARS and name not in ("bool_", "bool"):
        return _of_numpy(name)
    return None


_MODULES: dict[int, _Module] = {}


def _module(module: types.ModuleType) -> _Module:
    known = _MODULES.get(id(module))
    if known is None:
        known = _MODULES[id(module)] = _Module(module)
    return known


# ---- what a value of Python's is in a kernel -----------------------------------------------------------------------

_NUMPY_TYPES: dict[Any, Any] = {getattr(np, name): cls for name, cls in SCALARS.items() if hasattr(np, name)}
_NUMPY_TYPES[np.bool_] = SCALARS["boolean"]
_BY_CLASS: dict[type, Callable[[Any], Any]] = {}


def meaning(value: Any) -> Any:
    """Give what a global, a captured variable or a member of a module is in a kernel."""
    convert = _BY_CLASS.get(type(value))
    if convert is not None:
        return convert(value)
    if isinstance(value, KernelName):
        return kernel_name(value)
    if isinstance(value, types.ModuleType):
        return _module(value)
    if isinstance(value, _weft.Dispatcher):
        return device_function(value)
    if isinstance(value, np.generic):
        return scalar(value)
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, _weft.DeviceArrayBase):
        return device_array(value)
    if isinstance(value, type):
        return _NUMPY_TYPES.get(value, value)
    if isinstance(value, tuple) and value:
        items = [meaning(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return _foreign(value)


def _foreign(value: Any) -> Any:
    """Give what functions of other modules are: of math and NumPy, and plain ones."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__name__", "")
    if module in ("math", "cmath") and callable(value):
        return _special(sys.modules[module], name, value)
    if value is carray or value is farray:
        return NAMES[f"weft.{name}"]
    if isinstance(value, types.FunctionType) and not module_is_ours(module):
        if module is not None and module.partition(".")[0] == "numpy":
            return (_of_numpy(name) if getattr(np, name, None) is value else None) or value
        return rescoped(value)
    if callable(value) and name and getattr(np, name, None) is value and not isinstance(value, type):
        return _of_numpy(name) or value
    return value


def module_is_ours(name: str | None) -> bool:
    """Say whether functions of a module are weft's."""
    return name is not None and (name == "weft" or name.startswith("weft."))


def _type(value: Any) -> Any:
    text = str(value)
    if text in SCALARS:
        return SCALARS[text]
    return VECTORS[text] if vector_of(value) is not None and text in VECTORS else value


for _cls in (int, float, complex, bool, str, bytes, type(None), types.BuiltinFunctionType):
    _BY_CLASS[_cls] = (lambda value: value) if _cls is not types.BuiltinFunctionType else _foreign
_BY_CLASS[_weft.Type] = _type


def kernel_name(name: KernelName) -> Any:
    """Give what a name of weft's is in a kernel."""
    path = name._weft_path
    register = REGISTERS.get(path)
    if register is not None:
        return register() if threads.is_running() else name
    known = NAMES.get(path)
    if known is not None:
        return known
    if any(other.startswith(path + ".") for other in NAMES):
        return _Members(name)
    return functools.partial(_native, name, path.removeprefix("weft."))


class _Members:
    """A name with names below it, such as `cuda.coop.block`."""

    def __init__(self, name: KernelName) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return meaning(getattr(self._name, name))


class _Scope(_Names):
    """The globals of a kernel."""

    def __init__(self, module: dict[str, Any]) -> None:
        super().__init__(module)
        # What debuggers evaluate does not go by __getitem__: names of weft's and of modules are looked up here.
        for name, value in module.items():
            if not name.startswith("__") and isinstance(value, (KernelName, types.ModuleType, _weft.Type, np.ndarray)):
                self[name] = meaning(value)
        self["__builtins__"] = BUILTINS
        self._module = module

    def __getitem__(self, name: str) -> Any:
        # What a debugger has put here is its own.
        return meaning(self._module[name]) if name in self._module else super().__getitem__(name)


# By the identity of the globals and of the functions, as of the present launch.
_SCOPES: dict[int, tuple[dict[str, Any], _Scope]] = {}
_FUNCTIONS: dict[int, tuple[Any, Any]] = {}


def begin() -> None:
    """Forget what names meant: a launch sees them as they are now."""
    _SCOPES.clear()
    _FUNCTIONS.clear()


def rescoped(function: types.FunctionType) -> Any:
    """Give a function with the names of a kernel."""
    known = _FUNCTIONS.get(id(function))
    if known is not None:
        return known[1]
    held = _SCOPES.get(id(function.__globals__))
    if held is None:
        held = _SCOPES[id(function.__globals__)] = (function.__globals__, _Scope(function.__globals__))
    cells = None
    if function.__closure__ is not None:
        cells = tuple(types.CellType() for _ in function.__closure__)
    made = types.FunctionType(function.__code__, held[1], function.__name__, None, cells)
    made.__qualname__ = function.__qualname__
    # Before the cells: a function may be in its own.
    _FUNCTIONS[id(function)] = (function, made)
    for cell, own in zip(cells or (), function.__closure__ or (), strict=True):
        try:
            cell.cell_contents = meaning(own.cell_contents)
        except ValueError:
            continue  # it has no value yet
    made.__defaults__ = tuple(meaning(value) for value in function.__defaults__ or ()) or None
    made.__kwdefaults__ = {key: meaning(value) for key, value in (function.__kwdefaults__ or {}).items()} or None
    return made


def device_function(dispatcher: Any) -> Any:
    """Give what kernels call for a jitted function."""
    known = _FUNCTIONS.get(id(dispatcher))
    if known is not None:
        return known[1]
    made = rescoped(dispatcher.py_func)
    declared = dispatcher.declared_signatures
    if declared and dispatcher.device:
        inner = made

        @functools.wraps(dispatcher.py_func)
        def made(*args: Any) -> Any:
            signature = choose(declared, args)
            given = tuple(converted(arg, kind) for arg, kind in zip(args, signature.args, strict=True))
            return converted(inner(*given), signature.return_type)

    _FUNCTIONS[id(dispatcher)] = (dispatcher, made)
    return made
