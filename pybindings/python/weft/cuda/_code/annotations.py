"""Signatures from the annotations of functions, for who compiles one without saying for which types.

Launches do not look at annotations, as in numba: a kernel is compiled for the types of what it is launched with. The
command (`weft check` and others) reads the same from a file's text.
"""

from __future__ import annotations

import inspect

from weft._weft import Signature, Type, parse_signature
from weft.errors import CompileError
from weft.numba._types import own_type
from weft.types import none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_UNKNOWN = object()


def signature_of(function: Callable[..., Any]) -> Signature:
    """Give the signature that a function's annotations say.

    Parameters
    ----------
    function
        A Python function. Each parameter has a type of weft or numba as its annotation, such as ``float32[:]``, or
        a string of one, as with ``from __future__ import annotations``. The return annotation is optional.

    Raises
    ------
    TypeError
        A parameter has no annotation, or one that is not a weft type, such as ``np.ndarray``.
    """
    found = function.__annotations__
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells if not _is_empty(cell)}}
    args = []
    for name in inspect.signature(function).parameters:
        if name not in found:
            msg = f"{_ask(function)}, and parameter `{name}` has no annotation"
            raise TypeError(msg)
        ty = _type(found[name], names)
        if not isinstance(ty, Type):
            msg = f"{_ask(function)}, and the annotation of parameter `{name}` is not a weft type: {found[name]!r}"
            raise TypeError(msg)
        args.append(ty)
    returned = _type(found.get("return", _UNKNOWN), names)
    if isinstance(returned, Type):
        return Signature(returned, args)
    return Signature(none, args) if returned is None else parse_signature(tuple(args))


def _ask(function: Callable[..., Any]) -> str:
    return f"no signature was given for `{function.__name__}`: one is read from annotations such as `x: float32[:]`"


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # the access is the test
    except ValueError:
        return True
    return False


def _type(annotation: Any, names: dict[str, Any]) -> Any:
    """Give the type that an annotation is, or what else it is."""
    # With `from __future__ import annotations`, a string annotation is quoted twice.
    for _ in range(2):
        if isinstance(annotation, str):
            annotation = _evaluated(annotation, names)
    return own_type(annotation) if annotation is not None and annotation is not _UNKNOWN else annotation


def _evaluated(text: str, names: dict[str, Any]) -> Any:
    """Evaluate a string in the scope of the function, or else as a type in a signature."""
    try:
        return eval(text, names)  # Python's own way of evaluating string annotations
    except Exception:  # an annotation that cannot be evaluated is unknown
        pass
    try:
        (ty,) = parse_signature(f"({text},)").args
    except (CompileError, TypeError, ValueError):
        return _UNKNOWN
    return ty
