"""The observers of device arrays other than launches: of copies, fills, assignments, operators. A tape is one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from weft.cuda._memory.device_array import DeviceNDArray

observers: list[Callable[[DeviceNDArray, Any, str, Any], AbstractContextManager[Any]]] = []
"""Called before a write with the array, its source, the operation and its stream. The source is a device array that is
copied or converted, None for values of the host, or `UNSEEN`. The result is entered for the operation's launches."""

operator: Callable[..., Any] | None = None
"""Runs operators and sums of device arrays, if there is one: `operator(name, operands, out, options, stream,
compute)`."""

UNSEEN = object()
"""The source of a write whose derivative is not known."""


class _Nothing:
    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_error: object) -> None:
        """Do nothing."""


_NOTHING = _Nothing()


def writing(to: DeviceNDArray, source: Any, what: str, stream: Any) -> AbstractContextManager[Any]:
    """Notify the observers of a write. The operation runs in the block of the result."""
    if not observers:
        return _NOTHING
    from contextlib import ExitStack

    stack = ExitStack()
    for observer in tuple(observers):
        stack.enter_context(observer(to, source, what, stream))
    return stack
