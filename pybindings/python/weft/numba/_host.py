"""`numba.njit` and its like without numba: the host runs their functions by CPython, kernels compile them.

A function of `njit` is numba's by its call, `py_func`, and by what kernels make of it: a device function.
https://numba.readthedocs.io/en/stable/reference/jit-compilation.html has the decorators' forms and options.
"""

from __future__ import annotations

import functools
import types
import warnings

import weft
from weft._weft import Signature, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_OPTIONS = (
    *("boundscheck", "cache", "debug", "error_model", "fastmath", "forceinline", "forceobj", "inline", "locals"),
    *("looplift", "no_cfunc_wrapper", "no_cpython_wrapper", "no_rewrites", "nogil", "nopython", "parallel"),
    *("pipeline_class", "signature_or_function", "target_backend"),
)

prange = range

_has_warned = False


def _warn(name: str) -> None:
    """Say once that the host is not compiled for."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        msg = (
            f"numba is not installed, so `{name}` and other functions of numba.njit run in CPython on the host; in "
            "kernels they are compiled"
        )
        warnings.warn(msg, weft.errors.PerformanceWarning, stacklevel=3)


class Dispatcher:
    """A function of `numba.njit` without numba: CPython runs it for the host, and kernels compile it.

    Parameters
    ----------
    function
        The Python function.
    options
        The arguments of the decorator.
    """

    py_func: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        if not _has_warned:
            _warn(self.py_func.__name__)
        return self.py_func(*args, **kwargs)

    def __get__(self, owner: Any, _class: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __reduce__(self) -> str | tuple[Any, ...]:
        from weft import _pickle

        return _pickle.reduce_host(self)

    def __repr__(self) -> str:
        return f"<numba.njit function {self.py_func.__qualname__}, run by CPython>"


CPUDispatcher = Dispatcher


def jit(signature_or_function: Any = None, **options: Any) -> Any:
    """Make a function for the host, which kernels can call, too; see `Dispatcher`.

    Parameters
    ----------
    signature_or_function
        The function; or signatures, which a function that CPython runs does not need.
    **options
        numba's; they say how the host's code is made, and mean nothing here.
    """
    for option in options:
        if option not in _OPTIONS:
            msg = f"Unrecognized options: {option!r}. numba.jit has {', '.join(_OPTIONS)}"
            raise KeyError(msg)

    def make(function: Any) -> Dispatcher:
        function = getattr(function, "py_func", function)
        if not isinstance(function, types.FunctionType):
            msg = f"numba.jit() takes a Python function, not {type(function).__name__}"
            raise TypeError(msg)
        return Dispatcher(function, options)

    signatures = (str, tuple, list, Signature, Type)
    if signature_or_function is None or isinstance(signature_or_function, signatures):
        return make
    return make(signature_or_function)


def njit(*args: Any, **options: Any) -> Any:
    """Make a function as `jit` does."""
    return jit(*args, **options)


class _HostOnly:
    """A ufunc for the host, which only numba makes: an error when it is called, so that a program can be imported."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        functools.update_wrapper(self, function)
        self._what = what

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        msg = f"{self._what} compiles for the host, which weft does not support: install numba, or pass target='cuda'"
        raise NotImplementedError(msg)


def _ufunc(name: str, args: tuple[Any, ...], target: str, options: dict[str, Any]) -> Any:
    if target == "cuda":
        return getattr(weft, name)(*args, target=target, **options)
    if target not in ("cpu", "parallel"):
        msg = f"Unsupported target: {target}"
        raise ValueError(msg)
    what = f"numba.{name}(target={target!r})"
    if len(args) == 1 and isinstance(args[0], types.FunctionType):
        return _HostOnly(args[0], what)
    return functools.partial(_HostOnly, what=what)


def vectorize(*args: Any, target: str = "cpu", **options: Any) -> Any:
    """Make a ufunc: with ``target="cuda"`` as `weft.vectorize` does; those for the host need numba."""
    return _ufunc("vectorize", args, target, options)


def guvectorize(*args: Any, target: str = "cpu", **options: Any) -> Any:
    """Make a generalized ufunc: with ``target="cuda"`` as `weft.guvectorize` does; those for the host need numba."""
    return _ufunc("guvectorize", args, target, options)


__all__ = ["CPUDispatcher", "Dispatcher", "guvectorize", "jit", "njit", "prange", "vectorize"]
