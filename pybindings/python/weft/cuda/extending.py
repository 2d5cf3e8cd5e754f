"""Functions of Python's own in kernels, for the authors of libraries, as in `numba.cuda.extending`.

`register_jitable` lets kernels call a function that remains a Python function elsewhere. `overload` gives a function
other implementations in kernels: a function of the arguments' types chooses one. Functions that need llvmlite
raise an error.
"""

from __future__ import annotations

import inspect

from weft._weft import Dispatcher, launch_config_was_read
from weft.cuda import _jit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    # The implementation, or the reason why there is none.
    Chosen = Dispatcher | str | None

# The order in which implementations for several targets are tried; other targets are ignored.
_TARGETS = ("cuda", "gpu", "generic")


class _Overloaded:
    """A function, a method or an attribute with implementations for kernels."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name
        self.choices: list[tuple[int, Callable[..., Any], bool, dict[str, Any]]] = []
        self.chosen: dict[Any, Chosen] = {}

    def add(self, rank: int, choose: Callable[..., Any], strict: bool, options: dict[str, Any]) -> None:
        """Add a function that chooses an implementation; of one target, the first that does is taken."""
        self.choices.append((rank, choose, strict, options))
        self.choices.sort(key=lambda choice: choice[0])
        self.chosen.clear()

    def choose(self, args: list[Any], kwargs: dict[str, Any]) -> Chosen:
        """Choose the implementation for these types, always the same one unless it depends on the launch."""
        key = (tuple(args), tuple(kwargs.items()))
        if key not in self.chosen:
            launch_config_was_read()
            chosen = self._choose(args, kwargs)
            if launch_config_was_read():
                return chosen
            self.chosen[key] = chosen
        return self.chosen[key]

    def _choose(self, args: list[Any], kwargs: dict[str, Any]) -> Chosen:
        reasons = []
        for _, choose, strict, options in self.choices:
            name = getattr(choose, "__name__", repr(choose))
            try:
                found = choose(*args, **kwargs)
            except Exception as error:
                reasons.append(f"`{name}` raised {type(error).__name__}: {error}")
                continue
            if found is None:
                continue
            if isinstance(found, Dispatcher):
                return found
            if not inspect.isfunction(found):
                reasons.append(f"`{name}` gave {found!r}, which is not a function")
                continue
            if strict and (why := _difference(choose, found)):
                reasons.append(f"the implementation that `{name}` returned {why}")
                continue
            return _device_function(found, options)
        return "; ".join(reasons) or None


# Keyed by the identity of the function, which the value references: not all callables are hashable.
_FUNCTIONS: dict[int, tuple[Any, _Overloaded | Dispatcher]] = {}
# Keyed by path: functions that weft resolves by name (`numpy.linalg.norm`), `method.name` and `attribute.name`.
_MEMBERS: dict[str, tuple[str, int, str]] = {}
_ALL: list[_Overloaded] = []


def _find(value: Any) -> tuple[int, str] | Dispatcher | None:
    """Give what a function is to kernels, if it was registered; what weft looks up by name it finds in `_MEMBERS`."""
    _, known = _FUNCTIONS.get(id(value), (None, None))
    if isinstance(known, _Overloaded):
        return None if _paths(value) else (known.number, known.name)
    return known


def _choose(number: int, args: list[Any], kwargs: dict[str, Any]) -> Chosen:
    return _ALL[number].choose(args, kwargs)


def _new(name: str) -> _Overloaded:
    made = _Overloaded(len(_ALL), name)
    _ALL.append(made)
    return made


def _device_function(function: Callable[..., Any], options: dict[str, Any]) -> Dispatcher:
    made: Dispatcher = _jit.jit(device=True, **options)(function)
    return made


def _difference(choose: Callable[..., Any], found: Callable[..., Any]) -> str | None:
    """Say how the parameters of an implementation differ from those of the function that chose it."""
    wanted, given = (list(inspect.signature(each).parameters.values()) for each in (choose, found))
    shown = [", ".join(str(each.replace(annotation=each.empty)) for each in params) for params in (wanted, given)]
    if [(each.name, each.kind) for each in wanted] != [(each.name, each.kind) for each in given]:
        return f"takes ({shown[1]}), not ({shown[0]})"
    if [repr(each.default) for each in wanted] != [repr(each.default) for each in given]:
        return f"has different defaults: ({shown[1]}), not ({shown[0]})"
    return None


def _rank(target: str) -> int | None:
    return _TARGETS.index(target) if target in _TARGETS else None


def overload(
    func: Any,
    jit_options: dict[str, Any] | None = None,
    strict: bool = True,
    inline: str = "never",
    prefer_literal: bool = False,  # noqa: ARG001
    target: str = "cuda",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that chooses how kernels do what ``func`` does.

    It is called with the types of a call's arguments and returns a function with the same parameters, or None. Where
    none is given, kernels do what they do without it: ``len`` of an array is unchanged.

    Parameters
    ----------
    func
        A function of Python, NumPy or a library.
    target
        ``"cuda"``, or ``"generic"``, which is tried after all of those.
    jit_options, inline
        Options of `cuda.jit` for the functions that are chosen.
    strict
        A difference of the parameters' names is an error.
    prefer_literal
        No effect: strings are passed as values, numbers as types.

    Returns
    -------
    decorator
        A decorator that returns the function unchanged.

    Raises
    ------
    TypeError
        ``func`` is not a function, or is a jitted one.

    Examples
    --------
    >>> from weft.cuda.extending import overload
    >>> def spread(values):
    ...     return max(values) - min(values)
    >>> @overload(spread)
    ... def choose_spread(values):
    ...     return lambda values: values.max() - values.min()
    >>> @cuda.jit
    ... def kernel(x, out):
    ...     out[0] = spread(x)
    >>> out = np.zeros(1)
    >>> kernel[1, 1](np.array([3.0, -1.0, 4.0]), out)
    >>> print(out)
    [5.]
    """
    if isinstance(func, Dispatcher):
        msg = f"{func} is a jitted function, which kernels can call directly"
        raise TypeError(msg)
    if not callable(func):
        msg = f"overload takes a function, not {func!r}"
        raise TypeError(msg)
    rank, options = _rank(target), {"inline": inline, **(jit_options or {})}

    def decorate(choose: Callable[..., Any]) -> Callable[..., Any]:
        if rank is not None:
            _, known = _FUNCTIONS.get(id(func), (None, None))
            if not isinstance(known, _Overloaded):
                known = _new(getattr(func, "__name__", repr(func)))
                _FUNCTIONS[id(func)] = func, known
                for path in _paths(func):
                    _MEMBERS[path] = path, known.number, known.name
            known.add(rank, choose, strict, options)
        return choose

    return decorate


def _paths(func: Any) -> list[str]:
    """Give the paths of a function in a module that weft knows."""
    module, name = getattr(func, "__module__", None), getattr(func, "__name__", None)
    module = "numpy" if module is None and type(func).__name__ == "ufunc" else module
    if not isinstance(module, str) or not isinstance(name, str):
        return []
    if module.split(".")[0] not in ("numpy", "math", "cmath", "operator", "_operator", "builtins"):
        return []
    top = module.split(".")[0].removeprefix("_")
    return list(dict.fromkeys([f"{module.removeprefix('_')}.{name}", f"{top}.{name}"]))


def _of_class(
    kind: str, cls: type, name: str, strict: bool, options: dict[str, Any], target: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if not isinstance(cls, type):
        msg = f"typ must be a class of types, such as `types.Array`, not {cls!r}"
        raise TypeError(msg)

    def decorate(choose: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*args: Any, **kwargs: Any) -> Any:
            return choose(*args, **kwargs) if isinstance(args[0], cls) else None

        chosen.__name__ = choose.__name__
        chosen.__signature__ = inspect.signature(choose)  # type: ignore[attr-defined]
        if (rank := _rank(target)) is not None:
            path = f"{kind}.{name}"
            if path not in _MEMBERS:
                _MEMBERS[path] = path, _new(name).number, name
            _ALL[_MEMBERS[path][1]].add(rank, chosen, strict, options)
        return choose

    return decorate


def overload_method(
    typ: type,
    attr: str,
    target: str = "cuda",
    *,
    jit_options: dict[str, Any] | None = None,
    strict: bool = True,
    inline: str = "never",
    prefer_literal: bool = False,  # noqa: ARG001
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that chooses a method for the types of a class.

    Parameters
    ----------
    typ
        A class of types, such as `weft.types.Array`.
    attr
        The name.
    target
        ``"cuda"``, or ``"generic"``, which is tried after all of those.
    jit_options, inline
        Options of `cuda.jit` for the functions that are chosen.
    strict
        A difference of the parameters' names is an error.
    prefer_literal
        No effect: strings are passed as values, numbers as types.

    Returns
    -------
    decorator
        A decorator that returns the function unchanged.

    Examples
    --------
    >>> from weft.cuda.extending import overload_method
    >>> @overload_method(weft.types.Array, "middle")
    ... def choose_middle(array):
    ...     return lambda array: array[array.size // 2]
    >>> @cuda.jit
    ... def kernel(x, out):
    ...     out[0] = x.middle()
    >>> out = np.zeros(1)
    >>> kernel[1, 1](np.arange(5.0), out)
    >>> print(out)
    [2.]
    """
    return _of_class("method", typ, attr, strict, {"inline": inline, **(jit_options or {})}, target)


def overload_attribute(
    typ: type,
    attr: str,
    target: str = "cuda",
    *,
    jit_options: dict[str, Any] | None = None,
    strict: bool = True,
    inline: str = "never",
    prefer_literal: bool = False,  # noqa: ARG001
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that chooses a function of the object, which returns the attribute.

    Parameters
    ----------
    typ
        A class of types, such as `weft.types.Array`.
    attr
        The name.
    target
        ``"cuda"``, or ``"generic"``, which is tried after all of those.
    jit_options, inline
        Options of `cuda.jit` for the functions that are chosen.
    strict
        A difference of the parameters' names is an error.
    prefer_literal
        No effect: strings are passed as values, numbers as types.

    Returns
    -------
    decorator
        A decorator that returns the function unchanged.

    Examples
    --------
    >>> from weft.cuda.extending import overload_attribute
    >>> @overload_attribute(weft.types.Array, "half")
    ... def choose_half(array):
    ...     return lambda array: array.size // 2
    >>> @cuda.jit
    ... def kernel(x, out):
    ...     out[0] = x.half
    >>> out = np.zeros(1)
    >>> kernel[1, 1](np.arange(8.0), out)
    >>> print(out)
    [4.]
    """
    return _of_class("attribute", typ, attr, strict, {"inline": inline, **(jit_options or {})}, target)


def register_jitable(*args: Callable[..., Any], **options: Any) -> Any:
    """Let kernels call a function that remains a Python function elsewhere: ``@register_jitable``.

    Parameters
    ----------
    *args
        The function, where it decorates without options.
    **options
        Options of `cuda.jit` for kernels that call it.

    Returns
    -------
    function or decorator
        The function itself.

    Raises
    ------
    TypeError
        ``function`` is not a Python function.

    Examples
    --------
    >>> from weft.cuda.extending import register_jitable
    >>> @register_jitable
    ... def difference(a, b):
    ...     return abs(a - b)
    >>> @cuda.jit
    ... def kernel(x, out):
    ...     out[0] = difference(x[0], x[1])
    >>> out = np.zeros(1)
    >>> kernel[1, 1](np.array([3.0, -1.0]), out)
    >>> print(out, difference(3, 5))
    [4.] 2
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.isfunction(function):
            msg = f"register_jitable takes a Python function, not {function!r}"
            raise TypeError(msg)
        known = {name: value for name, value in options.items() if name not in ("target", "_nrt", "nopython")}
        _FUNCTIONS[id(function)] = function, _device_function(function, known)
        return function

    if not args:
        return decorate
    (function,) = args
    return decorate(function)


def is_jitted(function: object) -> bool:
    """Say whether a function is one of `cuda.jit`.

    Parameters
    ----------
    function
        Anything.

    Returns
    -------
    bool
        Numba's own functions are none.

    Examples
    --------
    >>> from weft.cuda.extending import is_jitted
    >>> is_jitted(scale), is_jitted(len)
    (True, False)
    """
    return isinstance(function, Dispatcher)


_HELP = {
    "intrinsic": "use `cuda.intrinsic` to make a function from PTX and Python",
    "overload_classmethod": "write a function and register it with `overload`",
    "type_callable": "write a function and register it with `overload`",
    "typeof_impl": "pass named tuples, dataclasses or records",
    "register_model": "pass named tuples, dataclasses or records",
    "models": "pass named tuples, dataclasses or records",
    "make_attribute_wrapper": "pass named tuples, dataclasses or records",
    "as_numba_type": "pass named tuples, dataclasses or records",
    "box": "pass named tuples, dataclasses or records",
    "unbox": "pass named tuples, dataclasses or records",
    "lower_builtin": "implement the function in kernel Python with `overload`",
    "lower_cast": "implement the function in kernel Python with `overload`",
    "lower_getattr": "use `overload_attribute` with kernel Python",
    "lower_getattr_generic": "use `overload_attribute` with kernel Python",
    "lower_setattr": "write a function and register it with `overload`",
    "lower_setattr_generic": "write a function and register it with `overload`",
    "infer": "implement the function in kernel Python with `overload`",
    "infer_getattr": "use `overload_attribute` with kernel Python",
    "infer_global": "implement the function in kernel Python with `overload`",
    "lower": "implement the function in kernel Python with `overload`",
}


class Refused:
    """A name that needs llvmlite. Using it is an error; importing it is not."""

    def __init__(self, name: str, instead: str) -> None:
        self._message = f"weft does not use llvmlite, which `{name}` is for: {instead}"

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(self._message)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def __getattr__(self, name: str) -> Any:
        """Refuse; a special name raises `AttributeError`, as Python's own lookups require."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


def __getattr__(name: str) -> Any:
    """Return the substitute for a name that Numba has here and weft does not."""
    if name in _HELP:
        return Refused(f"extending.{name}", _HELP[name])
    from weft._missing import missing

    raise missing(f"module {__name__!r}", f"{__name__}.{name}", __all__)


__all__ = ["is_jitted", "overload", "overload_attribute", "overload_method", "register_jitable"]
