"""Debuggers in kernels that CPython runs: in which threads breakpoints stop, and what pdb passes over."""

from __future__ import annotations

import bdb
import builtins
import os
import pdb
import sys

from weft import config
from weft.cuda._cpython import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Modules whose functions debuggers skip.
_OURS = ("weft", "weft.*", "numpy", "numpy.*", "threading", "contextlib")


def chosen(thread: threads.Thread) -> bool:
    """Say whether breakpoints stop in a thread."""
    for wanted, index in ((config.DEBUG_THREAD, thread.index), (config.DEBUG_BLOCK, thread.block.index)):
        if wanted is not None and tuple(wanted) != index:
            return False
    return True


def _stop(*_args: Any, header: str | None = None, **_kwargs: Any) -> None:
    """Begin to debug the caller with pdb, which passes over weft's own functions."""
    debugger = pdb.Pdb(skip=_OURS)
    thread = threads.current()
    debugger.message(f"{header or 'breakpoint'}: {thread.describe()} of the kernel `{thread.launch.kernel}`")
    debugger.set_trace(sys._getframe(1))


def _pass(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing: another thread is to be debugged."""


def breakpoint_here() -> Callable[..., Any]:
    """Give what `breakpoint` is in the running thread."""
    if not threads.is_running() or not chosen(threads.current()):
        return _pass
    if sys.breakpointhook is not sys.__breakpointhook__ or "PYTHONBREAKPOINT" in os.environ:
        return builtins.breakpoint
    return _stop


def without_debugger(call: Callable[[], None]) -> Callable[[], None]:
    """Make a call that pdb, where it steps, follows in the chosen threads alone."""

    def quiet() -> None:
        trace = sys.gettrace()
        if not isinstance(getattr(trace, "__self__", None), bdb.Bdb) or chosen(threads.current()):
            call()
            return
        sys.settrace(None)
        try:
            call()
        finally:
            sys.settrace(trace)

    return quiet


def set_trace_here() -> Callable[..., Any]:
    """Give what `pdb.set_trace` is in the running thread."""
    return _stop if threads.is_running() and chosen(threads.current()) else _pass
