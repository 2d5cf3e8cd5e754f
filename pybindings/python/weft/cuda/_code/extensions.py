"""Extensions of kernels: objects that prepare the arguments of launches."""

from __future__ import annotations

from numbers import Number

from weft._weft import Type, as_dtype, typeof_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft._weft import Dispatcher


def checked(extensions: Any) -> list[Any]:
    """Give a kernel's extensions as a list, the given one if it is a list.

    Raises
    ------
    TypeError
        ``extensions`` is not a list, or an object has no ``prepare_args``.
    """
    if extensions is None:
        return []
    if not isinstance(extensions, list | tuple):
        msg = f"extensions must be a list of objects with a `prepare_args` method, not {type(extensions).__name__}"
        raise TypeError(msg)
    for extension in extensions:
        if not callable(getattr(extension, "prepare_args", None)):
            msg = f"an extension must have a `prepare_args` method, which {type(extension).__name__} has not"
            raise TypeError(msg)
    return extensions if isinstance(extensions, list) else list(extensions)


def prepare(
    dispatcher: Dispatcher, args: tuple[Any, ...], stream: Any
) -> tuple[tuple[Any, ...], list[Callable[[], Any]]]:
    """Have a kernel's extensions prepare the arguments of a launch.

    Parameters
    ----------
    dispatcher
        The kernel.
    args
        A value for each of its parameters.
    stream
        The launch's stream as it was given, or None.

    Returns
    -------
    tuple
        The values that the kernel is launched with, and the functions to call after the launch.
    """
    declared = dispatcher.declared_signatures
    types = declared[0].args if len(declared) == 1 else tuple(map(_type, args))
    stream = 0 if stream is None else stream
    after: list[Callable[[], Any]] = []
    prepared = []
    for place, (ty, value) in enumerate(zip(types, args, strict=True)):
        for extension in reversed(dispatcher.extensions):
            pair = extension.prepare_args(ty, value, stream=stream, retr=after)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                msg = (
                    f"`prepare_args` of {type(extension).__name__} must return a type and a value for argument "
                    f"{place + 1} of kernel `{dispatcher.__name__}`, not {pair!r}"
                )
                raise TypeError(msg)
            ty, value = pair
        prepared.append(_as(ty, value))
    return tuple(prepared), after


def _type(value: Any) -> Type | None:
    """Give a value's type; None for what no kernel takes as it is, which an extension may make something of."""
    try:
        return typeof_value(value)
    except TypeError:
        return None


def _as(ty: Any, value: Any) -> Any:
    """Give a number as the one of a type that an extension says it is."""
    if not isinstance(ty, Type) or ty.kind != "number" or not isinstance(value, Number):
        return value
    return as_dtype(ty).type(value)
