"""Advice: warnings of what works, but slowly, or elsewhere than one may think.

They are Python's warnings, and its filters decide, with two exceptions. A filter that makes errors of all warnings
(``-W error``) does not stop a program that does what it should: only one that names weft's class, or Numba's, or the
text makes an error of advice. And the processes of a program, such as the workers of a pool, say the same thing once.
"""

from __future__ import annotations

import os
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_MOST_KEPT = 64
"""The number of warnings that a process shares with others: each takes a file descriptor."""

_first: dict[str, int] = {}
"""The warnings that this process was the first to emit, and its process id: it may have forked since."""

_shown: set[tuple[str, str, int]] = set()
"""Advice that was shown in place of an error, by text, file and line: Python's filters know nothing of it."""


def advise(category: type[Warning], message: str) -> None:
    """Warn at the line that called into weft, unless another process of the program has said the same there.

    Parameters
    ----------
    category
        A class of `weft.errors`.
    message
        The text.

    Raises
    ------
    Warning
        The `category`, where a filter that names it or the text makes errors of it.
    """
    frame = sys._getframe(1)
    place = frame.f_code.co_filename, frame.f_lineno
    if not _is_first(f"{category.__name__} {message} {place[0]}:{place[1]}"):
        return
    try:
        warnings.warn(message, category, stacklevel=2)
    except category as error:
        if _is_named(category, message, frame):
            raise
        if (message, *place) not in _shown:
            _shown.add((message, *place))
            warnings.showwarning(error, category, *place)


def _is_named(category: type[Warning], message: str, frame: FrameType) -> bool:
    """Whether the filter that makes an error of it is about it, and not about all warnings."""
    module = frame.f_globals.get("__name__", "<string>")
    for action, text, of, where, line in warnings.filters:
        if (
            issubclass(category, of)
            and _matches(text, message)
            and _matches(where, module)
            and line in {0, frame.f_lineno}
        ):
            return action == "error" and (text is not None or of.__module__ != "builtins")
    return False


def _matches(pattern: object, text: str) -> bool:
    """Whether a filter's pattern is for a text: nothing, a regular expression, or, of Python's filters, the text."""
    match = getattr(pattern, "match", None)
    return pattern is None or (pattern == text if match is None else match(text) is not None)


def _is_first(advice: str) -> bool:
    """Whether no other process of the program has said it.

    The processes of a program are those of a process group, as a shell starts one for each command. The first
    process that emits a warning opens an abstract socket of that name, which exists while it or a child lives.
    """
    if advice in _first:
        return _first[advice] == os.getpid()
    if len(_first) >= _MOST_KEPT:
        return True
    import hashlib
    import socket

    group = f"{os.getuid()} {os.getpgrp()} {advice}"
    name = "\0weft-advice-" + hashlib.sha256(group.encode()).hexdigest()[:32]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
            ours.bind(name)
            ours.detach()
    except OSError as error:
        import errno

        is_taken = error.errno == errno.EADDRINUSE
        if is_taken:
            _first[advice] = 0
        return not is_taken
    _first[advice] = os.getpid()
    return True
