"""Launch rules, output rules and effects: what an exported kernel knows besides its code.

`cuda.jit(launch=..., out=...)` declares the rules of a kernel. `weft build`, `kernel.export` and others that launch it
without Python use them.
"""

from __future__ import annotations

from typing import NamedTuple

from weft import _source
from weft._weft import (
    LaunchRule,
    OutputRule,
    Signature,
    Type,
    access,
    bind_rules,
    constant_launch,
    from_dtype,
    parse_signature,
    translate_launch,
    translate_shape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft._weft import Dispatcher

_LAUNCH = (
    "launch must be a function of arguments, such as `lambda x: ((x.size + 255) // 256, 256)`, or a tuple of a grid and"
    " a block"
)
_OUT = "out must be a rule such as cuda.like('x'), or a dict of rules by the name of the parameter"


class Effect(NamedTuple):
    """How a kernel accesses an argument.

    Parameters
    ----------
    reads
        It may read elements.
    writes
        It may write elements.
    accumulates
        It only adds to elements, by atomic operations of one kind.
    """

    reads: bool
    writes: bool
    accumulates: bool


class Output:
    """The rule for an output, an array that callers do not pass: its shape, dtype and initial value.

    `like` and `shaped` make them.
    """

    def __init__(self, shape: str | Callable[..., Any], dtype: Any, fill: int | None) -> None:
        if fill is not None and (isinstance(fill, bool) or fill != 0):
            msg = f"fill must be 0, or None for uninitialized memory, not {fill!r}"
            raise ValueError(msg)
        self.shape = shape
        self.dtype = dtype
        self.zeroed = fill is not None


def like(name: str, *, dtype: Any = None, fill: int | None = None) -> Output:
    """Give the rule for an output with the shape of an argument.

    Parameters
    ----------
    name
        The kernel's parameter with the shape.
    dtype
        The dtype, or the name of the parameter that has it; by default that of ``name``.
    fill
        0 if the elements start as zeros; by default they start uninitialized.

    Returns
    -------
    Output
        A value of the option ``out`` of `cuda.jit`.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid.

    Examples
    --------
    >>> @cuda.jit(launch=lambda x: ((x.size + 255) // 256, 256), out=cuda.like("x"))
    ... def double(x, out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 2 * x[i]
    """
    if not isinstance(name, str):
        msg = f"like() takes the name of a parameter, such as cuda.like('x'), not {type(name).__name__}"
        raise TypeError(msg)
    return Output(name, name if dtype is None else dtype, fill)


def shaped(shape: Callable[..., Any], *, dtype: Any = None, fill: int | None = None) -> Output:
    """Give the rule for an output whose shape is computed from the arguments.

    Parameters
    ----------
    shape
        A function whose parameters have the names of parameters of the kernel; it returns the extents. weft translates
        it, as a launch rule.
    dtype
        The dtype, or the name of the parameter that has it; by default that of the output in the kernel's signature.
    fill
        0 if the elements start as zeros; by default they start uninitialized.

    Returns
    -------
    Output
        A value of the option ``out`` of `cuda.jit`.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid.

    Examples
    --------
    >>> product = cuda.shaped(lambda a, b: (a.shape[0], b.shape[1]), dtype="a")
    """
    if not callable(shape):
        msg = (
            "shaped() takes a function of arguments, such as cuda.shaped(lambda x: (x.shape[0],)), not "
            f"{type(shape).__name__}"
        )
        raise TypeError(msg)
    return Output(shape, dtype, fill)


class Rules(NamedTuple):
    """The rules of a kernel for one signature.

    Parameters
    ----------
    launch
        The launch rule, if there is one.
    outputs
        The output rules by the name of the parameter.
    """

    launch: LaunchRule | None
    outputs: dict[str, OutputRule]


def translated(function: Callable[..., Any], launch: Any, out: Any) -> dict[str, Any]:
    """Translate the options `launch` and `out` of a kernel; a translated rule is given unchanged.

    Parameters
    ----------
    function
        The kernel's Python function.
    launch, out
        The options, or None.
    """
    return {"launch": _launch(function, launch), "out": _outputs(function, out)}


def _launch(function: Callable[..., Any], launch: Any) -> LaunchRule | None:
    if launch is None or isinstance(launch, LaunchRule):
        return launch
    if isinstance(launch, tuple):
        return constant_launch(launch)
    if not callable(launch):
        msg = f"{_LAUNCH}, not {type(launch).__name__}"
        raise TypeError(msg)
    return translate_launch(*_text(launch, "launch"), function)


def _outputs(function: Callable[..., Any], out: Any) -> dict[str | None, OutputRule] | None:
    if out is None:
        return None
    if not isinstance(out, dict):
        out = {None: out}
    rules: dict[str | None, OutputRule] = {}
    names = _params(function)
    for name, rule in out.items():
        if name is not None and name not in names:
            msg = f"out names `{name}`, which is no parameter of `{function.__name__}`: its parameters are "
            raise ValueError(msg + ", ".join(names))
        made = _output(function, rule)
        rules[name] = made if name is None else made.of(names.index(name))
    return rules


def _output(function: Callable[..., Any], rule: Any) -> OutputRule:
    if isinstance(rule, OutputRule):
        return rule
    if not isinstance(rule, Output):
        msg = f"{_OUT}, not {type(rule).__name__}"
        raise TypeError(msg)
    shape, source = (rule.shape, None) if isinstance(rule.shape, str) else _text(rule.shape, "shaped")
    dtype = rule.dtype
    if dtype is not None and not isinstance(dtype, str | Type):
        dtype = from_dtype(dtype)
    elif isinstance(dtype, str) and dtype != rule.shape and dtype not in _params(function):
        dtype = Type(dtype)
    return translate_shape(shape, source, dtype, rule.zeroed, function)


def _params(function: Callable[..., Any]) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def _text(function: Callable[..., Any], what: str) -> tuple[Callable[..., Any], str | None]:
    """Give a function and its text, if that is not its file's."""
    if not hasattr(function, "__code__"):
        msg = f"{what} takes a lambda or a Python function, not {type(function).__name__}"
        raise TypeError(msg)
    return _source.named(function)


def signature_for(kernel: Dispatcher, signature: Any) -> Signature:
    """Give the signature to use: the one given, the declared one, or that of the annotations.

    Parameters
    ----------
    kernel
        The kernel.
    signature
        A signature, or None.
    """
    if signature is not None:
        return parse_signature(signature)
    declared = kernel.declared_signatures
    if len(declared) == 1:
        return declared[0]
    if declared:
        msg = f"`{kernel.__name__}` has {len(declared)} signatures: pass one of them"
        raise TypeError(msg)
    from weft.cuda._code.annotations import signature_of

    return signature_of(kernel.py_func)


def effects(kernel: Dispatcher, signature: Any = None) -> dict[str, Effect]:
    """Give the effects of a kernel; see `Dispatcher.effects`."""
    rows = access(kernel, signature_for(kernel, signature))
    return {name: Effect(reads, writes, accumulates) for name, reads, writes, accumulates in rows}


def rules_of(kernel: Dispatcher, launch: Any = None, out: Any = None, signature: Any = None) -> Rules:
    """Give the rules of a kernel for a signature, checked against its types and effects.

    Parameters
    ----------
    kernel
        The kernel.
    launch, out
        Rules as `cuda.jit` takes them; by default those of the kernel's decorator.
    signature
        The types of the arguments; by default the declared signature, or the annotations of the parameters.

    Raises
    ------
    CompileError
        A rule cannot be translated, or the kernel cannot be compiled.
    TypeError, ValueError
        A rule does not fit the kernel.
    """
    options = kernel.targetoptions
    launch = _launch(kernel.py_func, options.get("launch") if launch is None else launch)
    outputs = _outputs(kernel.py_func, options.get("out") if out is None else out)
    given = [] if outputs is None else list(outputs.values())
    bound = bind_rules(kernel, signature_for(kernel, signature), launch, given)
    code = kernel.py_func.__code__
    return Rules(launch, {code.co_varnames[rule.param or 0]: rule for rule in bound})
