"""The decorator `cuda.jit`: its call shapes and its options."""

from __future__ import annotations

import functools
import operator
import types
import warnings

from weft import _foreign, _source, config
from weft._weft import (
    Dispatcher,
    Signature,
    Type,
    current_device_id,
    device_attributes,
    parse_signature,
    typeof_value,
)
from weft.errors import InvalidConfigWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_REMOVED = {
    "argtypes": "pass a signature: @cuda.jit('void(float32[:])')",
    "restype": "pass a signature: @cuda.jit('float32(float32)', device=True)",
    "bind": "kernels are always loaded on the current device",
}

_CARVEOUTS = {"default": -1, "maxl1": 0, "maxshared": 100}

# What a dispatcher is made with, where nobody says otherwise.
_DEFAULTS: dict[str, Any] = {
    "device": False,
    "inline": False,
    "fastmath": False,
    "lineinfo": False,
    "exceptions": False,
    "debug": False,
    "boundscheck": False,
    "opt": True,
    "launch_bounds": None,
    "max_registers": None,
    "ptx": None,
    "external": None,
    "link": (),
    "lto": None,
}

# What stands for one signature; a list stands for several.
_SIGNATURES = (str, Signature, Type, tuple)


def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: bool | str = "never",
    forceinline: bool = False,
    link: Any = (),
    debug: bool | None = None,
    opt: bool | None = None,
    lineinfo: bool = False,
    cache: bool = False,  # noqa: ARG001
    *,
    fastmath: bool = False,
    max_registers: int | None = None,
    launch_bounds: int | Sequence[int] | None = None,
    lto: bool | None = None,
    shared_memory_carveout: int | str | None = None,
    extensions: Any = None,
    boundscheck: bool | None = None,
    exceptions: bool = False,
    source: str | None = None,
    **unknown: Any,
) -> Any:
    """Make a kernel or a device function of a Python function.

    Parameters
    ----------
    func_or_sig
        The function; or a signature or a list of signatures, which are compiled at once. A signature is a text such
        as ``"void(float32[:], int32)"``, a call of types, or a tuple of types.
    device
        The function is called from kernels only. A function without it can be both.
    inline
        ``"always"`` or True puts the function's code into its callers.
    forceinline
        The same.
    link
        Code from elsewhere that is linked with the kernel: paths of PTX, CUDA C++, cubins, fatbins, objects, archives
        and LTO-IR, `LinkableCode` objects, or a list of these.
    debug
        Line tables and unoptimized code, and Python's rules: `raise`, `assert`, divisions by zero and bad indices of
        tuples raise exceptions. A launch waits for its end, and raises the first of them.
    opt
        Optimize; on unless ``debug``.
    lineinfo
        Line tables for profilers.
    cache
        Has no effect: compiling takes milliseconds.
    fastmath
        Relaxed floating point: denormals are zero, division and functions are approximate, sums are reordered.
    max_registers
        The most registers that a thread may use.
    launch_bounds
        The most threads of a block; or a tuple of that, the fewest blocks on a multiprocessor and the most blocks of a
        cluster.
    extensions
        Numba's handlers of arguments of other types, which weft does not have yet: any raises `NotImplementedError`.
    lto
        Optimize code that is linked together with the kernel, by nvJitLink; a kernel's own code always is.
    shared_memory_carveout
        Checked, and otherwise without effect.
    boundscheck
        An index of an array that is out of bounds raises an `IndexError`, as `exceptions` says.
    exceptions
        `raise` and `assert` raise exceptions: the first is raised again on the host where that next waits for the
        device. Without it their thread ends.
    source
        The function's text, for functions that have no file, such as those made by ``exec``.

    Returns
    -------
    Dispatcher or decorator
        A dispatcher where a function was given, else a decorator.
    """
    for name in unknown:
        if name in _REMOVED:
            msg = f"cuda.jit() has no option {name!r}: {_REMOVED[name]}"
            raise TypeError(msg)
        msg = f"cuda.jit() got an unexpected option {name!r}"
        raise TypeError(msg)
    if extensions:
        msg = "argument extensions are not supported yet"
        raise NotImplementedError(msg)
    if not isinstance(inline, bool) and inline not in ("never", "always"):
        msg = f"inline must be 'never', 'always' or a bool, not {inline!r}"
        raise ValueError(msg)
    debug = bool(config.DEBUG) if debug is None else debug
    if debug:
        _warn_about_debug(opt=opt, lineinfo=lineinfo)
    _check_carveout(shared_memory_carveout)
    options = {
        **_DEFAULTS,
        "device": bool(device),
        "inline": inline is True or inline == "always" or bool(forceinline),
        "fastmath": bool(fastmath),
        "lineinfo": bool(lineinfo or debug),
        "exceptions": bool(exceptions),
        "debug": bool(debug),
        "boundscheck": bool(boundscheck),
        "opt": not debug if opt is None else bool(opt),
        "launch_bounds": _launch_bounds(launch_bounds),
        "max_registers": _max_registers(max_registers),
        "link": _links(link),
        "lto": None if lto is None else bool(lto),
    }
    if func_or_sig is None:
        return functools.partial(_make, options=options, signatures=[], source=source)
    if isinstance(func_or_sig, _SIGNATURES) or _foreign.is_signature(func_or_sig):
        signatures = [parse_signature(func_or_sig)]
    elif isinstance(func_or_sig, list):
        signatures = [parse_signature(signature) for signature in func_or_sig]
    else:
        return _make(func_or_sig, options=options, signatures=[], source=source)
    return functools.partial(_make, options=options, signatures=signatures, source=source)


def _make(
    function: Callable[..., Any],
    *,
    options: dict[str, Any],
    signatures: list[Signature],
    source: str | None,
    kind: type[Dispatcher] = Dispatcher,
) -> Dispatcher:
    """Make a dispatcher of a function."""
    # Another dispatcher, weft's or Numba's, gives its function; weft's, its text too.
    kept = getattr(function, "kept_text", None)
    source = source or getattr(function, "given_source", None)
    function = getattr(function, "py_func", function)
    if not isinstance(function, types.FunctionType):
        msg = f"cuda.jit() makes kernels of Python functions, not of {type(function).__name__}"
        raise TypeError(msg)
    if source is None and function.__name__ == "<lambda>":
        function, source = _source.named(function)
        kept = None
    if kept is None and source is None:
        kept = _source.keep(function)
    dispatcher = kind(function, options, signatures, source, kept)
    functools.update_wrapper(dispatcher, function)
    if signatures and not options["device"]:
        for signature in signatures:
            if str(signature.return_type) != "none":
                msg = "CUDA kernel must have void return type."
                raise TypeError(msg)
            dispatcher.compile(signature)
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
        options = {**_DEFAULTS, "device": True, "ptx": (ptx, bool(pure))}
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
        # Another thread may have been quicker.
        known = dispatcher.specializations.setdefault((capability, types_), made)
    return known


def _links(link: Any) -> tuple[Any, ...]:
    if not link:
        return ()
    from weft.cuda import _link

    return _link.as_links(link)


def _warn_about_debug(*, opt: bool | None, lineinfo: bool) -> None:
    if opt:
        text = "debug=True with opt=True is not supported by CUDA's debuggers: set debug=False or opt=False"
    elif lineinfo:
        text = "debug and lineinfo are mutually exclusive: debug=True has line tables too"
    elif opt is None:
        text = "optimized code is not supported by CUDA's debuggers: debug=True means opt=False; say so"
    else:
        return
    warnings.warn(text, InvalidConfigWarning, stacklevel=3)


def _launch_bounds(bounds: int | Sequence[int] | None) -> tuple[int, int | None, int | None] | None:
    if bounds is None:
        return None
    values: tuple[Any, ...] = tuple(bounds) if isinstance(bounds, (tuple, list)) else (bounds,)
    if not 1 <= len(values) <= 3:
        msg = (
            f"Got {len(values)} launch bounds: {values}. A maximum of three are supported: "
            "(max_threads_per_block, min_blocks_per_sm, max_blocks_per_cluster)"
        )
        raise ValueError(msg)
    whole = [None if value is None else _whole(value) for value in values]
    wrong = whole.count(None) > values[1:].count(None)
    if wrong or any(bound is not None and not 1 <= bound < 2**31 for bound in whole):
        msg = (
            "launch_bounds must be the most threads of a block, from 1, or a tuple of that, the fewest blocks on a "
            f"multiprocessor and the most of a cluster, not {bounds!r}"
        )
        raise (TypeError if wrong else ValueError)(msg)
    threads, blocks, cluster = (*whole, None, None)[:3]
    assert threads is not None  # the loop above has seen to it
    return threads, blocks, cluster


def _max_registers(count: int | None) -> int | None:
    if count is None:
        return None
    registers = _whole(count)
    if registers is None or not 16 <= registers <= 255:
        msg = f"max_registers must be an integer from 16 to 255, not {count!r}"
        raise (TypeError if registers is None else ValueError)(msg)
    return registers


def _whole(value: object) -> int | None:
    """Give the int that a value is, or None for what is none; a bool counts as none."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        return None
    return operator.index(value)  # type: ignore[arg-type]


def _check_carveout(carveout: int | str | None) -> None:
    if carveout is None:
        return
    if isinstance(carveout, str):
        if carveout.lower() not in _CARVEOUTS:
            msg = f"Invalid carveout value: {carveout!r}; must be 'default', 'MaxL1' or 'MaxShared'"
            raise ValueError(msg)
    elif isinstance(carveout, bool) or not isinstance(carveout, int):
        msg = f"shared_memory_carveout must be a str or an int, not {type(carveout).__name__}"
        raise TypeError(msg)
    elif not -1 <= carveout <= 100:
        msg = f"Carveout value must be between -1 and 100, got {carveout}"
        raise ValueError(msg)


def take_over(foreign: Any) -> Dispatcher:
    """Make a device function of a function that Numba jitted: always the same one."""
    function = foreign.py_func
    known: Dispatcher | None = function.__dict__.get("__weft_jitted__")
    if known is None:
        known = jit(function, device=True)
        function.__weft_jitted__ = known
    return known
