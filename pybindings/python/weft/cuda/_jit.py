"""The decorator `cuda.jit`: its call shapes and its options."""

from __future__ import annotations

import functools
import sys
import types
import warnings

from weft import _source, config
from weft._weft import (
    Dispatcher,
    Signature,
    Type,
    check_options,
    current_device_id,
    device_attributes,
    interprets_kernels,
    jit_options,
    parse_signature,
    typeof_value,
)
from weft.cuda._code import extensions as _extensions
from weft.errors import InvalidConfigWarning
from weft.numba._types import is_signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

# The types of a single signature; a list has several.
_SIGNATURES = (str, Signature, Type, tuple)


def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: bool | str | Callable[..., bool] = "never",
    forceinline: bool = False,
    link: Any = (),
    debug: bool | None = None,
    opt: bool | None = None,
    lineinfo: bool = False,
    cache: bool | None = None,
    *,
    fastmath: bool = False,
    reproducible: bool | None = None,
    max_registers: int | None = None,
    launch_bounds: int | Sequence[int] | None = None,
    coarsen: int | Sequence[int] | Literal["auto"] | None = None,
    coarsen_blocks: int | Sequence[int] | None = None,
    tune: bool = False,
    lto: bool | None = None,
    shared_memory_carveout: int | str | None = None,
    extensions: Any = None,
    launch: Any = None,
    out: Any = None,
    boundscheck: bool | None = None,
    sanitize: str | Sequence[str] | bool | None = None,
    wraparound: bool = True,
    exceptions: bool = False,
    typing: str | None = None,
    source: str | None = None,
    **unknown: Any,
) -> Any:
    """Make a kernel or a device function of a Python function.

    Parameters
    ----------
    func_or_sig
        The function; or a signature or a list of signatures, which are compiled at once. A signature is a text such
        as ``"void(float32[:], int32)"``, a call of types, or a tuple of types.

    Returns
    -------
    Dispatcher or decorator
        A dispatcher where a function was given, else a decorator.

    Raises
    ------
    TypeError
        There is no such option, the argument is not a function, or a signature does not match it.
    ValueError
        An option does not take its value.
    CompileError
        For a signature: weft cannot compile the function; the message shows the line.

    Examples
    --------
    >>> @cuda.jit
    ... def scale(x, factor):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         x[i] *= factor
    >>> x = np.ones(1000)
    >>> scale[(x.size + 255) // 256, 256](x, 2.0)
    """
    # The parameters are the compiler's table of options, which checks their values.
    options = dict(locals())
    options.update(options.pop("unknown"))
    del options["func_or_sig"], options["source"]
    options["debug"] = bool(config.DEBUG) if debug is None else debug
    options["boundscheck"] = bool(config.BOUNDSCHECK) if boundscheck is None else boundscheck
    options["reproducible"] = bool(config.REPRODUCIBLE) if reproducible is None else reproducible
    if callable(inline):
        # Numba passes a callable that decides on inlining at each call; here LLVM decides.
        options["inline"] = "never"
    check_options(options)
    if options["debug"]:
        _warn_about_debug(opt=opt, lineinfo=lineinfo)
    options["link"] = _links(link)
    options["extensions"] = _extensions.checked(extensions)
    if func_or_sig is None:
        return functools.partial(_make, options=options, signatures=[], source=source)
    if isinstance(func_or_sig, _SIGNATURES) or is_signature(func_or_sig):
        signatures = [parse_signature(func_or_sig)]
    elif isinstance(func_or_sig, list):
        signatures = [parse_signature(signature) for signature in func_or_sig]
    else:
        return _make(func_or_sig, options=options, signatures=[], source=source)
    return functools.partial(_make, options=options, signatures=signatures, source=source)


def _described(text: str) -> str:
    """Put what the options are into the description of `jit`."""
    # Python 3.13 removes the indentation; with -OO there is no docstring.
    head, returns, tail = text.partition("Returns\n")
    indent = head[len(head.rstrip()) :].rpartition("\n")[2]
    lines = []
    for name, default, allowed, doc in jit_options():
        lines += [f"{name} : {allowed}, default {default}" if allowed else name, f"    {doc}"]
    return head.rstrip() + "".join(f"\n{indent}{line}" for line in lines) + f"\n\n{indent}{returns}{tail}"


jit.__doc__ = _described(jit.__doc__ or "")


def _make(
    function: Callable[..., Any],
    *,
    options: dict[str, Any],
    signatures: list[Signature],
    source: str | None,
    kind: type[Dispatcher] = Dispatcher,
) -> Dispatcher:
    """Make a dispatcher of a function."""
    # For another dispatcher, of weft or Numba, use its function, and for weft's also its source.
    kept = getattr(function, "cached_source", None)
    source = source or getattr(function, "given_source", None)
    function = getattr(function, "py_func", function)
    if not isinstance(function, types.FunctionType):
        msg = f"cuda.jit() takes a Python function, not {type(function).__name__}"
        raise TypeError(msg)
    if source is None and function.__name__ == "<lambda>":
        function, source = _source.named(function)
        kept = None
    if kept is None and source is None:
        kept = _source.keep(function)
    if options.get("launch") is not None or options.get("out") is not None:
        from weft.cuda import _rules

        options = {**options, **_rules.translated(function, options.get("launch"), options.get("out"))}
    dispatcher = kind(function, options, signatures, source, kept)
    functools.update_wrapper(dispatcher, function)
    if signatures and not dispatcher.device:
        for signature in signatures:
            if str(signature.return_type) != "none":
                msg = "CUDA kernel must have void return type."
                raise TypeError(msg)
            if not interprets_kernels():
                dispatcher.compile(signature)
        if not interprets_kernels():
            dispatcher.disable_compile()
    return dispatcher


def device_function(function: Callable[..., Any]) -> Dispatcher:
    """Make a device function of a function."""
    made: Dispatcher = jit(function, device=True)
    return made


def intrinsic(signature: Any, ptx: str, *, pure: bool = False) -> Callable[[Callable[..., Any]], Dispatcher]:
    """Make a device function that is PTX on a GPU and Python on a CPU.

    Parameters
    ----------
    signature
        One signature with a return type, such as ``"int32(int32, int32)"``; arguments of calls are converted to it. Its
        types are numbers other than complex ones, arrays as arguments, whose address PTX gets, and a tuple of numbers
        as the return type.
    ptx
        The instructions. ``%0``, ``%1`` and on are the registers of the results and then of the arguments: 16 bits for
        smaller types, too. A register of PTX's own is written with two signs: ``%%tid.x``.
    pure
        The PTX does nothing but compute its results from its arguments, so that it may be moved, repeated or dropped.

    Returns
    -------
    decorator
        Takes the Python function, which runs where a kernel is compiled for a CPU.

    Raises
    ------
    TypeError
        The signature is invalid, the PTX is not a string, or the argument is not a Python function.
    CompileError
        The signature has types that PTX cannot have.

    Examples
    --------
    >>> @cuda.intrinsic("int32(int32, int32)", "add.sat.s32 %0, %1, %2;", pure=True)
    ... def saturating_add(a, b):
    ...     return np.int32(min(max(np.int64(a) + b, -(2**31)), 2**31 - 1))
    """
    declared = parse_signature(signature)
    if not isinstance(ptx, str):
        msg = f"cuda.intrinsic() takes PTX as a str, not {type(ptx).__name__}"
        raise TypeError(msg)

    def decorator(function: Callable[..., Any]) -> Dispatcher:
        if not isinstance(function, types.FunctionType):
            msg = f"cuda.intrinsic() decorates a Python function, not {type(function).__name__}"
            raise TypeError(msg)
        options = {"device": True, "ptx": (ptx, bool(pure))}
        return _make(function, options=options, signatures=[declared], source=None)

    return decorator


def specialize(dispatcher: Dispatcher, args: tuple[Any, ...]) -> Dispatcher:
    """Make a dispatcher for the types of these arguments only, or give the one that was made; see `specialize`."""
    types_ = tuple(arg if isinstance(arg, Type) else typeof_value(arg) for arg in args)
    capability = device_attributes(current_device_id())["compute_capability"]
    known = dispatcher.specializations.get((capability, types_))
    if known is None:
        options, source = dispatcher.targetoptions, dispatcher.given_source
        made = _make(dispatcher, options=options, signatures=[parse_signature(types_)], source=source)
        # Another thread may have been faster.
        known = dispatcher.specializations.setdefault((capability, types_), made)
    return known


def _links(link: Any) -> tuple[Any, ...]:
    if not link:
        return ()
    from weft.cuda._code.link import as_links

    return as_links(link)


def _warn_about_debug(*, opt: bool | None, lineinfo: bool) -> None:
    if opt:
        text = "debug=True with opt=True is not supported by CUDA's debuggers: set debug=False or opt=False"
    elif lineinfo:
        text = "debug and lineinfo are mutually exclusive: debug=True includes line tables"
    elif opt is None:
        text = "optimized code is not supported by CUDA's debuggers: pass opt=False with debug=True"
    else:
        return
    warnings.warn(text, InvalidConfigWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Count the frames up to the first one that is not weft's, for a warning that the caller of this function gives."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "weft" and frame.f_back is not None:
        frame = frame.f_back
        level += 1
    return level


def take_over(foreign: Any) -> Dispatcher:
    """Make a device function of a function that Numba jitted: always the same one."""
    function = foreign.py_func
    known: Dispatcher | None = function.__dict__.get("__weft_jitted__")
    if known is None:
        known = jit(function, device=True)
        function.__weft_jitted__ = known
    return known
