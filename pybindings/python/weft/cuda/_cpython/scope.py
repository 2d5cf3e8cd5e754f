"""Names in a kernel that CPython runs.

The function's own code runs, with operators that are those of kernels (`rewriting`) and with other globals: a
dictionary that looks a name up in the module and gives what it stands for in a kernel. So a debugger sees the file,
the lines and the variables of the program. A function has Numba's types or NumPy's, and so have the names in it; one
that does not say which has its caller's.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import pdb
import sys
import types

import numpy as np

from weft import _weft, carray, farray
from weft.cuda._cpython import collectives, copies, matrix, native, rewriting, threads
from weft.cuda._cpython.arguments import choose, converted
from weft.cuda._cpython.arrays import (
    Array,
    Record,
    Vector,
    array,
    cast_dtype,
    device_array,
    shown,
    vector_of,
)
from weft.cuda._cpython.debugger import set_trace_here
from weft.cuda._cpython.expressions import Expressions, Function
from weft.cuda._cpython.float8 import MAKERS
from weft.cuda._cpython.functions import BUILTINS, OF_TUPLES, of_operator
from weft.cuda._cpython.names import NAMES, REGISTERS, VECTORS
from weft.cuda._cpython.operators import RULES
from weft.cuda._cpython.scalars import SCALARS, is_weak, plain, scalar, type_name
from weft.cuda._kernel_names import KernelName
from weft.cuda.mma import Tile
from weft.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _Names = dict[str, Any]
else:
    _Names = dict

__all__ = ["collectives", "copies"]  # imported for their entries in NAMES

# ---- modules -------------------------------------------------------------------------------------------------------


def _import(numpy: bool) -> Callable[..., Any]:
    def load(name: str, *args: Any) -> Any:
        return meaning(builtins.__import__(name, *args), numpy=numpy)

    return load


for _numpy, _names in BUILTINS.items():
    _names["__import__"] = _import(_numpy)


class _Module:
    """A module of whose members kernels see what they mean there."""

    def __init__(self, module: types.ModuleType, *, numpy: bool) -> None:
        self.__dict__["_module"], self.__dict__["_numpy"] = module, numpy

    def __getattr__(self, name: str) -> Any:
        module, numpy = self.__dict__["_module"], self.__dict__["_numpy"]
        if module is pdb and name == "set_trace":
            return set_trace_here()
        if module.__name__ in ("math", "cmath") and not hasattr(module, name):
            return functools.partial(_native, None, f"{module.__name__}.{name}", numpy)  # of a newer Python version
        value = getattr(module, name)
        special = _special(module, name, value, numpy=numpy)
        return meaning(value, numpy=numpy) if special is None else special

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])

    def __repr__(self) -> str:
        return repr(self.__dict__["_module"])


# Exact functions: NumPy's results are identical.
_EXACT = {"sqrt", "fabs", "floor", "ceil", "trunc", "copysign", "isnan", "isinf", "isfinite"}


@functools.cache
def _of_math(name: str, *, numpy: bool) -> Any:
    import math

    function = getattr(math, name)
    if numpy or name not in _EXACT:
        return functools.partial(_native, function, f"math.{name}", numpy)
    ufunc = getattr(np, name)

    def exact(*args: Any) -> Any:
        values = [_real(arg) for arg in args]
        if any(isinstance(value, np.float16) for value in values):
            return _native(function, f"math.{name}", numpy, *args)
        with np.errstate(all="ignore"):
            return scalar(ufunc(*values))

    return exact


def _real(value: Any) -> Any:
    value = plain(value)
    return value if isinstance(value, (np.float32, np.float64, np.float16)) else np.float64(value)


def _native(function: Any, what: str, numpy: bool, *args: Any, **kwargs: Any) -> Any:
    if numpy and len(args) > 1 and any(type_name(arg) is not None and not is_weak(arg) for arg in args):
        # Weakly typed operands are converted to the type of the others.
        common = RULES[numpy].common(list(args))
        if common is not None:
            args = tuple(RULES[numpy].converted(arg, common[0], weak=False) if is_weak(arg) else arg for arg in args)
    return native.call(function, args, kwargs, what, numpy=numpy)


@functools.cache
def _of_numpy(name: str, *, numpy: bool) -> Any:
    function = getattr(np, name)
    if not callable(function) or isinstance(function, type):
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not kwargs and all(type_name(arg) is not None for arg in args):
            # NumPy computes functions that compiled code does not support.
            with contextlib.suppress(CompileError):
                return _native(function, f"np.{name}", numpy, *args)
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


def _special(module: types.ModuleType, name: str, value: Any, *, numpy: bool) -> Any:
    """Give what a member of math, cmath or NumPy is in a kernel; None for what is not special."""
    if module.__name__ == "math" and callable(value):
        return _of_math(name, numpy=numpy)
    if module.__name__ == "cmath" and callable(value):
        return functools.partial(_native, value, f"cmath.{name}", numpy)
    if module is np and name not in SCALARS and name not in ("bool_", "bool"):
        return _of_numpy(name, numpy=numpy)
    return None


_MODULES: dict[tuple[int, bool], _Module] = {}


def _module(module: types.ModuleType, *, numpy: bool) -> _Module:
    known = _MODULES.get((id(module), numpy))
    if known is None:
        known = _MODULES[id(module), numpy] = _Module(module, numpy=numpy)
    return known


# ---- conversion of Python values to those of a kernel --------------------------------------------------------------

_NUMPY_TYPES: dict[Any, Any] = {getattr(np, name): cls for name, cls in SCALARS.items() if hasattr(np, name)}
_NUMPY_TYPES[np.bool_] = SCALARS["boolean"]
# Types whose values need no conversion.
_PLAIN = {int, float, complex, bool, str, bytes, type(None), *SCALARS.values(), Array, Record, Vector}


def meaning(value: Any, *, numpy: bool = False) -> Any:
    """Give what a global, a captured variable, an attribute or a member of a module is in a kernel."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, KernelName):
        return kernel_name(value, numpy=numpy)
    if isinstance(value, types.ModuleType):
        return _module(value, numpy=numpy)
    if isinstance(value, _weft.Type):
        return _type(value)
    if isinstance(value, _weft.Dispatcher):
        return device_function(value, numpy=numpy)
    if isinstance(value, np.generic):
        return scalar(value)
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, _weft.DeviceArrayBase):
        return device_array(value)
    if isinstance(value, type):
        if value.__module__ == "ml_dtypes":
            return MAKERS.get(value.__name__, value)
        return _NUMPY_TYPES.get(value, value)
    if isinstance(value, tuple) and value:
        items = [meaning(item, numpy=numpy) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return _foreign(value, numpy=numpy)


def _foreign(value: Any, *, numpy: bool) -> Any:
    """Give what functions of other modules are: of math and NumPy, and plain ones."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__name__", "")
    if module in ("math", "cmath") and callable(value):
        return _special(sys.modules[module], name, value, numpy=numpy)
    if module == "_operator":
        return of_operator(name, numpy=numpy) or value
    if value is carray or value is farray:
        return NAMES[f"weft.{name}"]
    if isinstance(value, types.FunctionType) and not module_is_ours(module):
        if module is not None and module.partition(".")[0] == "numpy":
            return (_of_numpy(name, numpy=numpy) if getattr(np, name, None) is value else None) or value
        return rescoped(value, numpy=numpy)
    if callable(value) and name and getattr(np, name, None) is value and not isinstance(value, type):
        return _of_numpy(name, numpy=numpy) or value
    return value


def module_is_ours(name: str | None) -> bool:
    """Say whether functions of a module are weft's."""
    return name is not None and (name == "weft" or name.startswith("weft."))


def _type(value: Any) -> Any:
    text = str(value)
    if text in SCALARS:
        return SCALARS[text]
    if text in MAKERS:
        return MAKERS[text]
    return VECTORS[text] if vector_of(value) is not None and text in VECTORS else value


def kernel_name(name: KernelName, *, numpy: bool = False) -> Any:
    """Give what a name of weft's is in a kernel."""
    path = name._weft_path
    register = REGISTERS.get(path)
    if register is not None:
        return register() if threads.is_running() else name
    known = NAMES.get(path)
    if known is not None:
        return known
    if isinstance(name, Tile):
        return matrix.of_host(name)
    if any(other.startswith(path + ".") for other in NAMES):
        return _Members(name, numpy=numpy)
    return functools.partial(_native, name, path.removeprefix("weft."), numpy)


class _Members:
    """A name with names below it, such as `cuda.coop.block`."""

    def __init__(self, name: KernelName, *, numpy: bool) -> None:
        self._name, self._numpy = name, numpy

    def __getattr__(self, name: str) -> Any:
        return meaning(getattr(self._name, name), numpy=self._numpy)


def _reading(numpy: bool) -> Callable[[Any, str], Any]:
    """Make what reads attributes: those of the program's objects are what they stand for in a kernel."""
    of_tuples = OF_TUPLES[numpy]

    def read(owner: Any, name: str) -> Any:
        if isinstance(owner, tuple) and name in of_tuples:
            return functools.partial(of_tuples[name], owner)
        found = getattr(owner, name)
        if type(found) in _PLAIN or module_is_ours(type(owner).__module__) or isinstance(owner, np.generic):
            return found
        if isinstance(found, types.MethodType):
            made = meaning(found.__func__, numpy=numpy)
            return found if made is found.__func__ else types.MethodType(made, found.__self__)
        return meaning(found, numpy=numpy)

    return read


_READ = {numpy: _reading(numpy) for numpy in (False, True)}


# ---- functions -----------------------------------------------------------------------------------------------------


class _Scope(_Names):
    """The globals of a kernel."""

    def __init__(self, module: dict[str, Any], *, numpy: bool) -> None:
        super().__init__(module)
        # Debuggers evaluate without __getitem__: resolve names of weft and of modules here.
        for name, value in module.items():
            if not name.startswith("__") and isinstance(value, (KernelName, types.ModuleType, _weft.Type, np.ndarray)):
                self[name] = meaning(value, numpy=numpy)
        self["__builtins__"] = BUILTINS[numpy]
        self._module, self._numpy = module, numpy

    def __getitem__(self, name: str) -> Any:
        # A name that a debugger has stored takes precedence.
        if name in self._module:
            return meaning(self._module[name], numpy=self._numpy)
        return super().__getitem__(name)


# Keyed by the identity of the globals or the function, and the typing rules; for the current launch.
_SCOPES: dict[tuple[int, bool], tuple[dict[str, Any], _Scope]] = {}
_FUNCTIONS: dict[tuple[int, bool], tuple[Any, Any]] = {}
# The compiler's expression types for the current launch.
_KNOWN: list[Expressions] = [Expressions()]
_NUMPY = [False]
# Keyed by the identity of a function's code, which the value references: its source, and the code compiled from it for
# given expression types.
_TEXTS: dict[int, tuple[types.CodeType, tuple[str, int, str | None] | None]] = {}
_CODES: dict[tuple[int, Any], types.CodeType] = {}


def begin(known: Expressions, *, numpy: bool) -> None:
    """Forget what names meant: a launch sees them as they are now."""
    _SCOPES.clear()
    _FUNCTIONS.clear()
    _KNOWN[0], _NUMPY[0] = known, numpy


def _scope_of(function: types.FunctionType, *, numpy: bool) -> _Scope:
    key = (id(function.__globals__), numpy)
    held = _SCOPES.get(key)
    if held is None:
        held = _SCOPES[key] = (function.__globals__, _Scope(function.__globals__, numpy=numpy))
    return held[1]


class _Version:
    """A function with the names and the operators of a kernel: its code is for the types of a call."""

    def __init__(self, function: types.FunctionType, dispatcher: Any, *, numpy: bool) -> None:
        self.function, self.numpy = function, numpy
        self.cells = {name: types.CellType() for name in function.__code__.co_freevars}
        code = function.__code__
        if id(code) not in _TEXTS:
            _TEXTS[id(code)] = (code, rewriting.text_of(function, dispatcher))
        self.source = _TEXTS[id(code)][1]
        first = self.source[1] if self.source is not None else 0
        self.place = (code.co_filename, first)
        count = code.co_argcount
        self.params = code.co_varnames[: count + code.co_kwonlyargcount]
        defaults = function.__defaults__ or ()
        self.defaults = dict(zip(self.params[count - len(defaults) : count], defaults, strict=True))
        self.defaults |= function.__kwdefaults__ or {}
        # Keyed by the kinds of a call's arguments.
        self.made: dict[tuple[Any, ...], tuple[types.FunctionType, Function]] = {}

    def for_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """Give the function for a call, and the arguments as it takes them; those given by name are changed."""
        given = (*args, *(kwargs.get(name, self.defaults.get(name)) for name in self.params[len(args) :]))
        kinds = tuple((arg.dtype, arg.ndim) if isinstance(arg, Array) else arg.__class__ for arg in given)
        found = self.made.get(kinds)
        if found is None:
            known = _KNOWN[0].of(*self.place, given, numpy=self.numpy)
            found = self.made[kinds] = (self._function(known), known)
        made, known = found
        if self.numpy:
            args = tuple(known.argument(at, arg) for at, arg in enumerate(args))
            kwargs.update(
                (name, known.argument(self.params.index(name), arg))
                for name, arg in kwargs.items()
                if name in self.params
            )
        return made, args

    def _function(self, known: Function) -> types.FunctionType:
        """Make the function, with the types of its expressions."""
        function, code = self.function, self.function.__code__
        if self.source is not None:
            key = (id(code), known.key)
            if key not in _CODES:
                read = _READ[self.numpy]
                _CODES[key] = rewriting.rewritten(function, self.source, read, known, numpy=self.numpy) or code
            code = _CODES[key]
        closure = tuple(self.cells[name] for name in code.co_freevars)
        scope = _scope_of(function, numpy=self.numpy)
        made = types.FunctionType(code, scope, function.__name__, None, closure or None)
        made.__qualname__ = function.__qualname__
        made.__defaults__ = tuple(self._meaning(value) for value in function.__defaults__ or ()) or None
        named = function.__kwdefaults__ or {}
        made.__kwdefaults__ = {key: self._meaning(value) for key, value in named.items()} or None
        return made

    def _meaning(self, value: Any) -> Any:
        return meaning(value, numpy=self.numpy)

    def fill(self) -> None:
        """Give its cells what the function's have."""
        for cell, own in zip(self.cells.values(), self.function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self._meaning(own.cell_contents)
            except ValueError:
                continue  # it has no value yet

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, args = self.for_call(args, kwargs)
        return function(*args, **kwargs)


def rescoped(function: types.FunctionType, dispatcher: Any = None, *, numpy: bool = False) -> Any:
    """Give a function with the names and the operators of a kernel."""
    known = _FUNCTIONS.get((id(function), numpy))
    if known is not None:
        return known[1]
    made = _Version(function, dispatcher, numpy=numpy)
    functools.update_wrapper(made, function)
    # Before the cells are filled: a function may reference itself.
    _FUNCTIONS[id(function), numpy] = (function, made)
    made.fill()
    return made


def kernel_function(dispatcher: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Give what each thread of a launch calls, and the arguments for it."""
    version: _Version = rescoped(dispatcher.py_func, dispatcher, numpy=_NUMPY[0])
    return version.for_call(args, {})


def has_numpy_types(dispatcher: Any, *, otherwise: bool = False) -> bool:
    """Say whether the numbers of a jitted function have NumPy's types."""
    typing = dispatcher.targetoptions.get("typing")
    return otherwise if typing is None else typing == "numpy"


def device_function(dispatcher: Any, *, numpy: bool | None = None) -> Any:
    """Give what kernels call for a jitted function, in one with NumPy's types or Numba's, or in the kernel itself."""
    numpy = has_numpy_types(dispatcher, otherwise=_NUMPY[0] if numpy is None else numpy)
    known = _FUNCTIONS.get((id(dispatcher), numpy))
    if known is not None:
        return known[1]
    made = rescoped(dispatcher.py_func, dispatcher, numpy=numpy)
    declared = dispatcher.declared_signatures
    if declared and dispatcher.device:
        inner = made

        @functools.wraps(dispatcher.py_func)
        def made(*args: Any) -> Any:
            signature = choose(declared, args)
            given = tuple(converted(arg, kind) for arg, kind in zip(args, signature.args, strict=True))
            return converted(inner(*given), signature.return_type)

    _FUNCTIONS[id(dispatcher), numpy] = (dispatcher, made)
    return made
