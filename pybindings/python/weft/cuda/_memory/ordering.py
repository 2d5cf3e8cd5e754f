"""On which device and in which stream an operation of device arrays runs, between what else uses the arrays.

The device is the first array's: it is the current one while the operation is queued, and what was is then again.

The stream is the one that the caller names, else the first that one of the arrays has, else the default stream. Where
an array has another stream, the operation waits for what was queued there, and what is queued there later waits for
the operation. Only in a stream that another library captures nothing waits: the graph runs later, and who runs it
orders it with the rest.
"""

from __future__ import annotations

import contextlib

from weft import _weft
from weft._weft import DeviceArrayBase, StreamBase
from weft.cuda._streams import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


@contextlib.contextmanager
def ordered(arrays: Sequence[Any], stream: Any = 0) -> Iterator[Any]:
    """Give the stream for an operation of arrays; what is queued in it in the block is ordered with their own.

    Parameters
    ----------
    arrays
        The operands: those that are no device arrays do not count. The first that has a stream names it.
    stream
        The stream that the caller requests instead.
    """
    stream = as_stream(stream)
    every: list[Any] = [array if isinstance(array, DeviceArrayBase) else _mapped(array) for array in arrays]
    found = [array for array in every if array is not None]
    before = _weft.current_device_id()
    device = found[0].device if found else before
    # An array on another device is copied through the host, in its own stream.
    given = [array.stream for array in found if array.device == device]
    if device != before:
        _weft.select_device(device)
    chosen = stream or next((each for each in given if each), 0)
    try:
        others = _others(given, chosen)
        if others and isinstance(chosen, StreamBase) and chosen.is_capturing():
            # Work that another library captures into a graph has no dependencies outside of the graph.
            others = []
        for other in others:
            _follow(chosen, other)
        try:
            yield chosen
        finally:
            for other in others:
                _follow(other, chosen)
    finally:
        if device != before:
            _weft.select_device(before)


def _mapped(value: Any) -> Any:
    """Give a mapped array as the device sees it; None for all other values."""
    return getattr(value, "_weft_device_array", None)


def _others(given: Sequence[Any], chosen: Any) -> list[Any]:
    """Give the streams that CUDA does not order with the chosen one."""
    if not any(given) and not chosen:
        return []
    own = int(chosen)
    others = {int(each): each for each in given}
    others.pop(own, None)
    # The default stream and weft's streams synchronize with each other. A stream of another library may not.
    if not own:
        return [each for each in others.values() if _is_foreign(each)]
    if not _is_foreign(chosen):
        others.pop(0, None)
    return list(others.values())


def _is_foreign(stream: Any) -> bool:
    return bool(getattr(stream, "external", True))


def _follow(later: Any, earlier: Any) -> None:
    """Have what is queued in one stream from now on wait for what another has now."""
    from weft.cuda._streams import Event

    event = Event()
    event.record(earlier)
    event.wait(later)
