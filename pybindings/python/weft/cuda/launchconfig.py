"""The configuration of the launch that a kernel is being compiled for.

Code that runs while a kernel is compiled, such as what `weft.cuda.extending.overload` decorates, can read it, and
declare that its choice depends on it. The names are those of `numba.cuda.launchconfig`.
"""

from __future__ import annotations

import contextlib

from weft._weft import Dispatcher, _LaunchConfiguration, current_launch_config
from weft.cuda._jit import _make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def ensure_current_launch_config() -> _LaunchConfiguration:
    """Give the configuration of the launch that a kernel is being compiled for in this thread.

    Raises
    ------
    RuntimeError
        No kernel is, or not for a launch.
    """
    config = current_launch_config()
    if config is None:
        msg = "No launch config set for this thread"
        raise RuntimeError(msg)
    return config


@contextlib.contextmanager
def capture_compile_config(dispatcher: Dispatcher) -> Iterator[dict[str, _LaunchConfiguration | None]]:
    """Note for which launch a kernel is compiled meanwhile.

    Parameters
    ----------
    dispatcher
        The kernel.

    Yields
    ------
    dict
        ``{"config": None}``, and the configuration of the last such launch when there was one: a launch that finds its
        kernel compiled is none.
    """
    if not isinstance(dispatcher, Dispatcher):
        msg = f"dispatcher is required: pass the result of `cuda.jit`, not {dispatcher!r}"
        raise TypeError(msg)
    record: dict[str, _LaunchConfiguration | None] = {"config": None}
    records = dispatcher.__dict__.setdefault("_compile_configs", [])
    records.append(record)
    try:
        yield record
    finally:
        # Compare by identity: `==` compares the contents of records.
        records[:] = [other for other in records if other is not record]


def _note(launcher: _LaunchConfiguration) -> None:
    """Note a launch that a kernel is going to be compiled for."""
    for record in launcher.dispatcher.__dict__.get("_compile_configs", ()):
        record["config"] = launcher


def _key(launcher: _LaunchConfiguration) -> tuple[object, ...]:
    return launcher.griddim, launcher.blockdim, launcher.sharedmem


def _mark(launcher: _LaunchConfiguration) -> None:
    """Keep the kernels that a dispatcher has for launches with this configuration."""
    launcher.dispatcher.__dict__.setdefault("_launch_configs", {_key(launcher): launcher.dispatcher})


def _select(launcher: _LaunchConfiguration) -> Dispatcher:
    """Give the dispatcher that has the kernels for launches with a configuration."""
    dispatcher = launcher.dispatcher
    known: dict[tuple[object, ...], Dispatcher] = dispatcher.__dict__["_launch_configs"]
    chosen = known.get(_key(launcher))
    if chosen is None:
        made = _make(dispatcher, options=dispatcher.targetoptions, signatures=[], source=dispatcher.given_source)
        # Another thread may have been faster.
        chosen = known.setdefault(_key(launcher), made)
    return chosen


def _recompile(dispatcher: Dispatcher) -> None:
    """Compile the kernels for further configurations again."""
    for other in list(dispatcher.__dict__["_launch_configs"].values()):
        if other is not dispatcher:
            other.recompile()


__all__ = ["capture_compile_config", "current_launch_config", "ensure_current_launch_config"]
