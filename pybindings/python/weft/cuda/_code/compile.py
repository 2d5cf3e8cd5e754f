"""Code for programs that are not weft's: `cuda.compile` and its relatives. They need neither a GPU nor its driver."""

from __future__ import annotations

from weft import config
from weft._weft import Dispatcher, parse_signature
from weft.cuda._code.annotations import signature_of
from weft.cuda._jit import _make, _warn_about_debug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft._weft import Type

_CURRENT: Any = object()
"""The compute capability of the current device."""


def compile(  # its name in numba.cuda
    pyfunc: Callable[..., Any],
    sig: Any = None,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    cc: tuple[Any, ...] | None = None,
    opt: bool | None = None,
    abi: str = "c",
    abi_info: dict[str, Any] | None = None,
    output: str = "ptx",
    forceinline: bool = False,
    launch_bounds: int | Sequence[int] | None = None,
    typing: str | None = None,
) -> tuple[Any, Type]:
    """Compile a function to PTX or LTO-IR that other programs link or load.

    Parameters
    ----------
    pyfunc
        The Python function, or what `cuda.jit` made of one.
    sig
        The types of its arguments, as `cuda.jit` takes them. With a return type, the result is converted to that. If
        nothing is said, the function's annotations say it: ``def f(x: float32, y: float32)``.
    debug
        Line tables and unoptimized code.
    lineinfo
        Add line tables for profilers, to PTX only.
    device
        A device function; otherwise a kernel.
    fastmath
        Relax floating point: denormals are zero, division and functions are approximate, sums are reordered.
    cc
        The compute capability to compile for: ``(9, 0)``, or ``(9, 0, "a")``. The code runs on later ones too, unless
        it is for one alone. ``(7, 5)`` if nothing is said, or what ``WEFT_DEFAULT_PTX_CC`` says.
    opt
        Optimize; on unless ``debug``.
    abi
        How a device function takes its arguments and returns its result: ``"c"``, as one of CUDA C++ with C linkage,
        or ``"numba"``, as numba-cuda's own functions. Kernels have numba-cuda's.
    abi_info
        ``{"abi_name": "f"}`` is the function's symbol, which is its name in Python if nothing is said.
    output
        ``"ptx"``, or ``"ltoir"`` for LTO-IR, which nvJitLink and nvcc optimize while they link it: the function is then
        inlined into its callers. This takes NVIDIA's libNVVM, of a CUDA toolkit or the Python package ``nvidia-nvvm``
        (CUDA 13) or ``nvidia-cuda-nvcc-cu12``.
    forceinline
        Always inline the device function; for LTO-IR only.
    launch_bounds
        For a kernel: the most threads of a block; or a tuple of that, the fewest blocks on a multiprocessor and the
        most blocks of a cluster.
    typing
        ``"numba"`` or ``"numpy"``, as `cuda.jit` takes it; by default, what the function was jitted with.

    Returns
    -------
    tuple
        The PTX as a string or the LTO-IR as bytes, and the type of what the function returns.

    Raises
    ------
    CompileError
        weft cannot compile the function; the message shows the line.
    TypeError, ValueError
        An option or the signature is none.
    NotImplementedError
        The output or the ABI is not supported, or libNVVM is not found for LTO-IR.
    LinkerError
        libNVVM rejects the code.

    Examples
    --------
    >>> ptx, returns = cuda.compile(lambda x: x + 1, "float32(float32)", cc=(9, 0), abi_info={"abi_name": "inc"})
    >>> ".func" in ptx, returns
    (True, float32)
    """
    _check(output, abi, device=device, forceinline=forceinline)
    options: dict[str, Any] = {"device": device, "fastmath": fastmath, "launch_bounds": launch_bounds}
    options["typing"] = getattr(pyfunc, "targetoptions", {}).get("typing") if typing is None else typing
    debug = bool(config.DEBUG) if debug is None else bool(debug)
    if debug:
        _warn_about_debug(opt=opt, lineinfo=lineinfo)
    options["lineinfo"] = lineinfo or debug
    options["opt"] = not debug if opt is None else opt
    signature = signature_of(getattr(pyfunc, "py_func", pyfunc)) if sig is None else parse_signature(sig)
    if not device and str(signature.return_type) != "none":
        msg = "CUDA kernel must have void return type."
        raise TypeError(msg)
    # Declare the signature on the device function, so that its result is converted.
    signatures = [signature] if device else []
    if isinstance(pyfunc, Dispatcher) and pyfunc.targetoptions.get("external"):
        msg = f"`{pyfunc.targetoptions['external'][0]}` is linked code: there is nothing to compile"
        raise TypeError(msg)
    if isinstance(pyfunc, Dispatcher) and pyfunc.targetoptions.get("ptx"):
        options["ptx"] = pyfunc.targetoptions["ptx"]
        signatures = pyfunc.declared_signatures
    dispatcher = _make(pyfunc, options=options, signatures=signatures, source=None)
    role = abi if device else "kernel"
    return dispatcher.compile_foreign(signature, role, _symbol(abi_info), _target(cc), output == "ltoir", forceinline)


def compile_for_current_device(
    pyfunc: Callable[..., Any],
    sig: Any = None,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    opt: bool | None = None,
    abi: str = "c",
    abi_info: dict[str, Any] | None = None,
    output: str = "ptx",
    forceinline: bool = False,
    launch_bounds: int | Sequence[int] | None = None,
    typing: str | None = None,
) -> tuple[Any, Type]:
    """Compile as `compile` does, for the current device.

    Parameters
    ----------
    pyfunc
        The function, jitted or not.
    sig
        A signature, or None for the annotations of the parameters.
    debug, lineinfo, fastmath, opt, forceinline, launch_bounds, typing
        As options of `cuda.jit`.
    device
        Compile a device function; False compiles a kernel.
    abi
        ``"c"``, as functions of CUDA C++ with C linkage, or ``"numba"``, as numba-cuda's.
    abi_info
        ``{"abi_name": symbol}`` names the symbol.
    output
        ``"ptx"`` or ``"ltoir"``.

    Returns
    -------
    (str or bytes, Type)
        The PTX or the LTO-IR, and the type that the function returns.

    Raises
    ------
    CompileError
        weft cannot compile the function; the message shows the line.
    TypeError, ValueError
        An option or the signature is none.
    NotImplementedError
        The output or the ABI is not supported, or libNVVM is not found for LTO-IR.

    Examples
    --------
    >>> ptx, returns = cuda.compile_for_current_device(lambda x: x + 1, "int32(int32)")
    >>> returns
    int32
    """
    return compile(
        pyfunc,
        sig,
        debug=debug,
        lineinfo=lineinfo,
        device=device,
        fastmath=fastmath,
        cc=_CURRENT,
        opt=opt,
        abi=abi,
        abi_info=abi_info,
        output=output,
        forceinline=forceinline,
        launch_bounds=launch_bounds,
        typing=typing,
    )


def compile_ptx(
    pyfunc: Callable[..., Any],
    sig: Any = None,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    cc: tuple[Any, ...] | None = None,
    opt: bool | None = None,
    abi: str = "numba",
    abi_info: dict[str, Any] | None = None,
    forceinline: bool = False,
    launch_bounds: int | Sequence[int] | None = None,
    typing: str | None = None,
) -> tuple[str, Type]:
    """Compile as `compile` does: a kernel, or with ``device=True`` a device function with numba-cuda's ABI.

    Parameters
    ----------
    pyfunc
        The function, jitted or not.
    sig
        A signature, or None for the annotations of the parameters.
    debug, lineinfo, fastmath, opt, forceinline, launch_bounds, typing
        As options of `cuda.jit`.
    device
        Compile a device function; False compiles a kernel.
    cc
        The compute capability, such as ``(9, 0)``; ``WEFT_DEFAULT_PTX_CC`` unless given.
    abi
        ``"c"``, as functions of CUDA C++ with C linkage, or ``"numba"``, as numba-cuda's.
    abi_info
        ``{"abi_name": symbol}`` names the symbol.

    Returns
    -------
    (str, Type)
        The PTX, and the type that the function returns.

    Raises
    ------
    CompileError
        weft cannot compile the function; the message shows the line.
    TypeError, ValueError
        An option or the signature is none.
    NotImplementedError
        The ABI is not supported.

    Examples
    --------
    >>> def fill(x):
    ...     x[cuda.grid(1)] = 1
    >>> ptx, _ = cuda.compile_ptx(fill, "void(float32[::1])", cc=(9, 0))
    >>> ".visible .entry" in ptx
    True
    """
    return compile(
        pyfunc,
        sig,
        debug=debug,
        lineinfo=lineinfo,
        device=device,
        fastmath=fastmath,
        cc=cc,
        opt=opt,
        abi=abi,
        abi_info=abi_info,
        forceinline=forceinline,
        launch_bounds=launch_bounds,
        typing=typing,
    )


def compile_ptx_for_current_device(
    pyfunc: Callable[..., Any],
    sig: Any = None,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    opt: bool | None = None,
    abi: str = "numba",
    abi_info: dict[str, Any] | None = None,
    forceinline: bool = False,
    launch_bounds: int | Sequence[int] | None = None,
    typing: str | None = None,
) -> tuple[str, Type]:
    """Compile as `compile_ptx` does, for the current device.

    Parameters
    ----------
    pyfunc
        The function, jitted or not.
    sig
        A signature, or None for the annotations of the parameters.
    debug, lineinfo, fastmath, opt, forceinline, launch_bounds, typing
        As options of `cuda.jit`.
    device
        Compile a device function; False compiles a kernel.
    abi
        ``"c"``, as functions of CUDA C++ with C linkage, or ``"numba"``, as numba-cuda's.
    abi_info
        ``{"abi_name": symbol}`` names the symbol.

    Returns
    -------
    (str, Type)
        The PTX, and the type that the function returns.

    Raises
    ------
    CompileError
        weft cannot compile the function; the message shows the line.
    TypeError, ValueError
        An option or the signature is none.
    NotImplementedError
        The ABI is not supported.

    Examples
    --------
    >>> def fill(x):
    ...     x[cuda.grid(1)] = 1
    >>> ptx, _ = cuda.compile_ptx_for_current_device(fill, "void(float32[::1])")
    >>> ".visible .entry" in ptx
    True
    """
    return compile(
        pyfunc,
        sig,
        debug=debug,
        lineinfo=lineinfo,
        device=device,
        fastmath=fastmath,
        cc=_CURRENT,
        opt=opt,
        abi=abi,
        abi_info=abi_info,
        forceinline=forceinline,
        launch_bounds=launch_bounds,
        typing=typing,
    )


def compile_all(
    pyfunc: Callable[..., Any],
    sig: Any = None,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    cc: tuple[Any, ...] | None = None,
    opt: bool | None = None,
    abi: str = "c",
    abi_info: dict[str, Any] | None = None,
    output: str = "ltoir",
    forceinline: bool = False,
    launch_bounds: int | Sequence[int] | None = None,
    typing: str | None = None,
) -> tuple[list[Any], Type]:
    """Compile as `compile` does; the first of the pair is a list of all code that the function needs.

    The function's own code is followed by `LinkableCode` objects for the linked functions that it calls.

    Parameters
    ----------
    pyfunc
        The function, jitted or not.
    sig
        A signature, or None for the annotations of the parameters.
    debug, lineinfo, fastmath, opt, forceinline, launch_bounds, typing
        As options of `cuda.jit`.
    device
        Compile a device function; False compiles a kernel.
    cc
        The compute capability, such as ``(9, 0)``; ``WEFT_DEFAULT_PTX_CC`` unless given.
    abi
        ``"c"``, as functions of CUDA C++ with C linkage, or ``"numba"``, as numba-cuda's.
    abi_info
        ``{"abi_name": symbol}`` names the symbol.
    output
        ``"ltoir"``, as in numba-cuda, or ``"ptx"``.

    Returns
    -------
    (list, Type)
        The PTX or the LTO-IR and `LinkableCode` objects, and the type that the function returns.

    Raises
    ------
    CompileError
        weft cannot compile the function; the message shows the line.
    TypeError, ValueError
        An option or the signature is none.
    NotImplementedError
        The output or the ABI is not supported, or libNVVM is not found for LTO-IR.

    Examples
    --------
    >>> code, returns = cuda.compile_all(lambda x: x + 1, "int32(int32)", output="ptx")
    >>> len(code), returns
    (1, int32)
    """
    from weft.cuda._code.link import gather

    code, returns = compile(
        pyfunc,
        sig,
        debug=debug,
        lineinfo=lineinfo,
        device=device,
        fastmath=fastmath,
        cc=cc,
        opt=opt,
        abi=abi,
        abi_info=abi_info,
        output=output,
        forceinline=forceinline,
        launch_bounds=launch_bounds,
        typing=typing,
    )
    options = {"device": True, "link": getattr(pyfunc, "targetoptions", {}).get("link", ())}
    dispatcher = _make(pyfunc, options=options, signatures=[], source=None)
    return [code, *gather(dispatcher.linked())], returns


def _check(output: str, abi: str, *, device: bool, forceinline: bool) -> None:
    if output not in ("ptx", "ltoir"):
        msg = f"Unsupported output type: {output}; pass output='ptx' or output='ltoir'"
        raise NotImplementedError(msg)
    if forceinline and output != "ltoir":
        msg = "Can only designate forced inlining in LTO-IR"
        raise ValueError(msg)
    if forceinline and not device:
        msg = "Cannot force-inline kernels"
        raise ValueError(msg)
    if abi not in ("c", "numba"):
        msg = f"Unsupported ABI: {abi}; pass abi='c' or abi='numba'"
        raise NotImplementedError(msg)
    if abi == "c" and not device:
        msg = "The C ABI is not supported for kernels: pass abi='numba', or device=True for a device function"
        raise NotImplementedError(msg)


def _symbol(abi_info: dict[str, Any] | None) -> str | None:
    unknown = set(abi_info or ()) - {"abi_name"}
    if unknown:
        msg = f"abi_info has only the option 'abi_name', not {sorted(unknown)[0]!r}"
        raise ValueError(msg)
    symbol = (abi_info or {}).get("abi_name")
    if symbol is not None and not _is_symbol(symbol):
        msg = f"abi_name must be a PTX symbol of letters, digits, '_' and '$', not {symbol!r}"
        raise ValueError(msg)
    return symbol


def _is_symbol(name: object) -> bool:
    if not isinstance(name, str) or not name.isascii() or not name.replace("$", "_").isidentifier():
        return False
    return len(name) > 1 or name.isalpha()


def _target(cc: Any) -> str | None:
    """Name the target of a compute capability; None for the current device's."""
    if cc is _CURRENT:
        return None
    if isinstance(cc, str) or not (cc is None or hasattr(cc, "__iter__")):
        msg = f"cc must be a compute capability such as (9, 0), not {cc!r}"
        raise TypeError(msg)
    major, minor, *suffix = max(config.CUDA_DEFAULT_PTX_CC, (7, 5)) if cc is None else cc
    return f"sm_{major}{minor}{''.join(suffix)}"
