"""Functions of numbers in kernels that CPython runs: compiled code computes them, to the same bits.

For each function and types of arguments a kernel of one thread is made that calls it; arrays are passed as they are.
"""

from __future__ import annotations

import cmath
import itertools
import keyword
import math

import numpy as np

from weft import _weft
from weft.cuda._cpython.arrays import Array, Record, dtype_of
from weft.cuda._cpython.scalars import plain, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Functions that are created here belong to this module, and CPython never runs them.
MODULE = __name__
_MADE: dict[Any, tuple[Callable[..., Any], Any]] = {}
_numbers = itertools.count()


def _given(value: Any) -> Any:
    if isinstance(value, Array):
        return np.asarray(value)
    if isinstance(value, Record):
        return value._record
    if isinstance(value, tuple):
        return tuple(_given(item) for item in value)
    return plain(value)


def _function(name: str, text: str, names: dict[str, Any]) -> Any:
    scope = names | {"__name__": MODULE}
    exec(compile(text, f"<weft {name} {next(_numbers)}>", "exec"), scope)
    return scope[name]


def expression(text: str, args: tuple[Any, ...], *, numpy: bool = False) -> Any:
    """Compute an expression of `a0`, `a1` and so on; with NumPy's rules if requested.

    Raises
    ------
    CompileError
        It takes no numbers of these types.
    """
    values = tuple(_given(arg) for arg in args)
    types = tuple(_weft.typeof_value(value) for value in values)
    key = (text, types, numpy)
    if key not in _MADE:
        _MADE[key] = _compiled("expression", text, {"math": math, "cmath": cmath, "np": np}, types, numpy=numpy)
    return _run(*_MADE[key], values)


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str, *, numpy: bool = False) -> Any:
    """Call a function that kernels can call; with NumPy's rules if requested.

    Raises
    ------
    CompileError
        It takes no arguments of these types.
    """
    values = tuple(_given(arg) for arg in args)
    words = ", ".join(f"{name}={value!r}" for name, value in kwargs.items() if isinstance(value, (str, bool, int)))
    others = [name for name, value in kwargs.items() if not isinstance(value, (str, bool, int))]
    values += tuple(_given(kwargs[name]) for name in others)
    types = tuple(_weft.typeof_value(value) for value in values)
    key = (what, types, len(args), tuple(others), words, numpy)
    if key not in _MADE:
        _MADE[key] = _make(function, what, types, len(args), others, words, numpy=numpy)
    return _run(*_MADE[key], values)


def _run(kernel: Callable[..., Any], results: Any, values: tuple[Any, ...]) -> Any:
    if results is None:
        kernel(*values)
        return None
    outs = [np.zeros(1, dtype) for dtype in (results if isinstance(results, tuple) else (results,))]
    kernel(*outs, *values)
    found = tuple(scalar(out[0]) for out in outs)
    return found if isinstance(results, tuple) else found[0]


def _make(
    function: Any,
    what: str,
    types: tuple[Any, ...],
    count: int,
    others: list[str],
    words: str,
    *,
    numpy: bool,
) -> tuple[Callable[..., Any], Any]:
    params = [f"a{i}" for i in range(len(types))]
    given = [*params[:count], *(f"{name}={param}" for name, param in zip(others, params[count:], strict=True))]
    # By name, because this Python version may not have the function.
    of_module = what.startswith(("math.", "cmath."))
    names = {"math": math, "cmath": cmath} if of_module else {"function": function}
    called = f"{what if of_module else 'function'}({', '.join([*given, *([words] if words else [])])})"
    name = "call_" + "".join(letter if letter.isalnum() else "_" for letter in what)
    assert not keyword.iskeyword(name)
    return _compiled(name, called, names, types, numpy=numpy)


def _compiled(
    name: str, value: str, names: dict[str, Any], types: tuple[Any, ...], *, numpy: bool
) -> tuple[Callable[..., Any], Any]:
    from weft.cuda._jit import jit

    params = [f"a{i}" for i in range(len(types))]
    text = f"def {name}({', '.join(params)}):\n    return {value}\n"
    core = jit(_function(name, text, names), device=True, source=text, typing="numpy" if numpy else "numba")
    result = core.result_type(types)
    if result is None or str(result) == "none":
        results: Any = None
        outs, stores = [], f"    core({', '.join(params)})\n"
    elif result.kind in ("tuple", "unituple", "object") or str(result).startswith(("Tuple", "UniTuple")):
        items = list(result)
        outs = [f"out{i}" for i in range(len(items))]
        stores = f"    result = core({', '.join(params)})\n"
        stores += "".join(f"    {out}[0] = result[{i}]\n" for i, out in enumerate(outs))
        results = tuple(dtype_of(item) for item in items)
    else:
        outs, stores, results = ["out"], f"    out[0] = core({', '.join(params)})\n", dtype_of(result)
    text = f"def kernel({', '.join([*outs, *params])}):\n{stores}"
    kernel: Any = jit(_function("kernel", text, {"core": core}), source=text)
    return kernel.configure(1, 1, advise=False), results
