"""Exceptions that kernels raise: the classes that requests name, and the objects that the host raises."""

from __future__ import annotations

import builtins
import linecache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Place = tuple[str, int, str]

# Keyed by the name in requests. If several classes have a name, it is numbered.
_CLASSES: dict[str, type[BaseException]] = {}


def identify(cls: type[BaseException]) -> str:
    """Give an exception class the text that stands for it in requests."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    key, number = name, 1
    while _CLASSES.setdefault(key, cls) is not cls:
        number += 1
        key = f"{name}#{number}"
    return key


def _class(key: str) -> type[BaseException]:
    known = _CLASSES.get(key)
    return getattr(builtins, key.removeprefix("builtins."), RuntimeError) if known is None else known


def exception(
    key: str,
    args: tuple[Any, ...],
    location: Place,
    thread: tuple[int, int, int],
    block: tuple[int, int, int],
    calls: tuple[list[Place], int],
    at_launch: bool,
) -> BaseException:
    """Make the exception that a thread has raised.

    That of debug code has Numba's message, which says where it comes from; every one has a note that does.
    """
    file, line, function = location
    if at_launch:
        where = (
            f"In function {function!r}, file {file}, line {line}, tid={list(thread[::-1])} ctaid={list(block[::-1])}"
        )
        args = (f"{where}: {args[0]}", *args[1:]) if args else (where,)
    cls = _class(key)
    try:
        error = cls(*args)
    except Exception as fault:
        error = RuntimeError(f"{cls.__name__}{args}, which cannot be made: {fault}")
    lines = [f"Raised by thread {thread} of block {block}, on the device (most recent call last):"]
    known, further = calls
    if further:
        lines.append(f"  ... {further} more calls ...")
    for file, line, function in [*reversed(known), location]:
        lines.append(f'  File "{file}", line {line}, in {function}')
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"    {text}")
    error.add_note("\n".join(lines))
    return error
