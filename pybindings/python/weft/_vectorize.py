"""The decorators `vectorize` and `guvectorize`: their call shapes and their options."""

from __future__ import annotations

from weft._weft import Dispatcher, Signature, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft.cuda._ufunc.gufunc import GUfunc


def vectorize(
    ftylist_or_function: Any = (), target: str = "cuda", identity: Any = None, cache: bool = False, **options: Any
) -> Any:
    """Make a ufunc of a function of numbers: a function over the elements of arrays, on the device.

    Parameters
    ----------
    ftylist_or_function
        Signatures such as ``"float32(float32, float32)"``, or one; without a result type it is found. None, or the
        function itself: each call's types make a loop.
    target
        ``"cuda"``: the device, which without a GPU is the CPU.
    identity
        0, 1, ``"reorderable"`` or None.
    cache
        Must be False.

    Returns
    -------
    Ufunc or decorator
        A ufunc where a function was given, else a decorator.

    Raises
    ------
    TypeError
        A signature is invalid or has types other than numbers, or ``func`` is not a function.
    ValueError
        The target is another.
    CompileError
        For a signature: weft cannot compile the function; the message shows the line.

    Examples
    --------
    >>> @vectorize(["float32(float32, float32)"])
    ... def axpy(x, y):
    ...     return 2 * x + y
    >>> print(axpy(np.ones(3, np.float32), np.float32(1)))
    [3. 3. 3.]
    """
    from weft.cuda._ufunc.ufunc import Ufunc

    _check_target(target)
    if cache:
        msg = "caching is not supported"
        raise TypeError(msg)
    for option in options:
        if option != "nopython":
            msg = f"Unrecognized options. cuda vectorize target does not support option: '{option}'"
            raise KeyError(msg)
        import warnings

        warnings.warn("nopython kwarg for cuda target is redundant", RuntimeWarning, stacklevel=2)
    _check_identity(identity)
    if _is_function(ftylist_or_function):
        return Ufunc(ftylist_or_function, (), identity)
    signatures = _listed(ftylist_or_function)

    def wrap(function: Callable[..., Any]) -> Ufunc:
        return Ufunc(function, signatures, identity)

    return wrap


def guvectorize(*args: Any, **options: Any) -> Callable[[Callable[..., Any]], GUfunc]:
    """Make a generalized ufunc of a function of arrays, which is called for each of many, on the device.

    Parameters
    ----------
    ftylist
        Signatures such as ``"void(float32[:], float32[:])"``, or one: the arrays that the function sees, results last.
        A result that is a number is an array of one element. Left out, each call's types make a loop, and the arrays
        for the results must be given.
    layout
        The axes of each argument and result, such as ``"(m,n),(n)->(m)"``.
    target
        ``"cuda"``: the device, which without a GPU is the CPU.
    identity
        0, 1, ``"reorderable"`` or None.

    Returns
    -------
    decorator

    Raises
    ------
    TypeError
        A signature is none, or fits neither the function nor the layout.
    ValueError
        The layout is none, or the target is another.
    CompileError
        For a signature: weft cannot compile the function; the message shows the line.

    Examples
    --------
    >>> @guvectorize(["void(float32[:], float32[:])"], "(n)->()")
    ... def norm(v, out):
    ...     out[0] = 0
    ...     for x in v:
    ...         out[0] += x * x
    >>> norm(np.ones((10, 3), np.float32)).shape
    (10,)
    """
    if len(args) not in (1, 2):
        msg = "guvectorize() takes one or two positional arguments"
        raise TypeError(msg)
    signatures, layout = _listed(args[0]) if len(args) == 2 else [], args[-1]
    _check_target(options.pop("target", "cuda"))
    identity = options.pop("identity", None)
    _check_identity(identity)
    if options.pop("cache", False):
        msg = "caching is not supported"
        raise TypeError(msg)
    if options.pop("writable_args", ()):
        msg = "writable_args are not supported"
        raise TypeError(msg)
    if not options.pop("nopython", True):
        msg = "nopython flag must be True"
        raise TypeError(msg)
    if options:
        msg = f"The following target options are not supported: {', '.join(map(repr, options))}"
        raise TypeError(msg)
    if not isinstance(layout, str):
        msg = f"the layout must be a string such as '(m,n),(n)->(m)', not {layout!r}"
        raise TypeError(msg)

    def wrap(function: Callable[..., Any]) -> GUfunc:
        from weft.cuda._ufunc.gufunc import GUfunc

        return GUfunc(function, signatures, layout, identity)

    return wrap


def _check_target(target: str) -> None:
    if target != "cuda":
        msg = f"Unsupported target: {target!r}; use 'cuda', which runs on the CPU if there is no GPU"
        raise ValueError(msg)


def _check_identity(identity: Any) -> None:
    if identity not in (0, 1, None, "reorderable"):
        msg = f"Invalid identity value {identity!r}"
        raise ValueError(msg)


def _is_function(given: Any) -> bool:
    return isinstance(given, Dispatcher) or hasattr(given, "__code__") or hasattr(given, "py_func")


def _listed(given: Any) -> Sequence[Any]:
    """Return a list of signatures: a single one need not be in a list, and types alone are one without a result."""
    if isinstance(given, (str, Signature)):
        return [given]
    if given is None:
        return []
    signatures = list(given)
    if signatures and all(isinstance(ty, Type) for ty in signatures):
        return [tuple(signatures)]
    return signatures
