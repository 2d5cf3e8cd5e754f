"""Streams and events."""

from __future__ import annotations

import contextlib

from weft._weft import EventBase, StreamBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

_NAMES = {0: "<Default CUDA stream>", 1: "<Legacy default CUDA stream>", 2: "<Per-thread default CUDA stream>"}


class Handle(int):
    """A driver handle: an int that also has ``.value``."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The integer."""
        return int(self)


class Stream(StreamBase):
    """A queue of work. Work in one stream runs in order."""

    @property
    def handle(self) -> Handle:
        """The driver's handle."""
        return Handle(self.address)

    def __int__(self) -> int:
        return self.address

    def __cuda_stream__(self) -> tuple[int, int]:
        """CUDA's stream protocol: version and handle."""
        return 0, self.address

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """Wait for the stream when the block is left."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any = None) -> None:
        """Call ``callback(stream, status, arg)`` in another thread when the work queued so far is done."""
        import threading

        event = Event()
        event.record(self)

        def wait() -> None:
            event.synchronize()
            callback(self, 0, arg)

        threading.Thread(target=wait, daemon=True).start()

    def __repr__(self) -> str:
        return _NAMES.get(self.address, f"<CUDA stream {self.address}>")


class Event(EventBase):
    """A point in a stream's work."""

    def __new__(cls, timing: bool = True) -> Self:  # noqa: ARG004
        """Make an event; every event can be timed."""
        return super().__new__(cls)


def stream() -> Stream:
    """Make a new stream on the current device."""
    return Stream()


def default_stream() -> Stream:
    """Give the default stream, of the device that is current when it is used."""
    return Stream(handle=0)


def legacy_default_stream() -> Stream:
    """Give the default stream that all threads share."""
    return Stream(handle=1)


def per_thread_default_stream() -> Stream:
    """Give the default stream of the calling thread."""
    return Stream(handle=2)


def external_stream(ptr: int) -> Stream:
    """Wrap a stream of another library by its handle; it is not destroyed."""
    if not isinstance(ptr, int):
        msg = f"ptr for external stream must be an int, not {type(ptr).__name__}"
        raise TypeError(msg)
    return Stream(handle=ptr)


def event(timing: bool = True) -> Event:
    """Make a new event."""
    return Event(timing)


def event_elapsed_time(start: Event, end: Event) -> float:
    """Milliseconds between two recorded events."""
    return start.elapsed_time(end)
