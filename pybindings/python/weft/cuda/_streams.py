"""Streams and events."""

from __future__ import annotations

import contextlib

from weft._weft import EventBase, StreamBase, is_recording, stream_handle
from weft.errors import DeviceWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
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
    """A queue of work. Work in one stream runs in order.

    Examples
    --------
    >>> stream = cuda.stream()
    >>> with stream.auto_synchronize():
    ...     x = cuda.to_device(np.ones(3), stream=stream)
    ...     scale[1, 32, stream](x, 2.0)
    """

    # A reference to another library's stream.
    _of: Any = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _missing("Stream", self, name)

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
        """Call ``callback(stream, status, arg)`` in another thread when the work that is now in the stream is done.

        The status is 0, or the driver's error number if that work failed. An exception in it becomes a warning.

        Raises
        ------
        TypeError
            The callback cannot be called.
        """
        if not callable(callback):
            msg = f"callback must be a function of (stream, status, arg), not {type(callback).__name__}"
            raise TypeError(msg)

        def call(error: Exception | None) -> None:
            try:
                callback(self, _status(error), arg)
            except Exception as raised:  # no caller can receive it
                import warnings

                warnings.warn(f"a callback of {self!r} raised {raised!r}", DeviceWarning, stacklevel=1)

        self._when_done(call)

    def async_done(self) -> asyncio.Future[Stream]:
        """Return a future of the running event loop, which is done when the work that is now in the stream is done.

        Raises
        ------
        RuntimeError
            No event loop runs in this thread.

        Awaiting it raises what that work has failed with.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stream] = loop.create_future()

        def resolve(error: Exception | None) -> None:
            if future.done():  # canceled
                return
            if error is None:
                future.set_result(self)
            else:
                future.set_exception(error)

        def call(error: Exception | None) -> None:
            # An event loop that has been closed has no waiters.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(resolve, error)

        self._when_done(call)
        return future

    def _when_done(self, call: Callable[[Exception | None], None]) -> None:
        """Call in another thread, with the error or None, when the work that is now in the stream is done."""
        import threading

        if is_recording():
            msg = "cannot wait for a stream while a graph is recorded, because the recorded work has not run yet"
            raise RuntimeError(msg)
        event = Event(timing=False)
        event.record(self)

        def wait() -> None:
            error = None
            try:
                event.synchronize()
            except Exception as raised:
                error = raised
            call(error)

        threading.Thread(target=wait, daemon=True).start()

    def __repr__(self) -> str:
        of = "External CUDA" if self.external else "CUDA"
        return _NAMES.get(self.address, f"<{of} stream {self.address}>")


def _status(error: Exception | None) -> int:
    """Give the driver's number of an error: 0 for none, 999 (unknown) for one that is not the driver's."""
    if error is None:
        return 0
    return getattr(error, "code", None) or 999


class Event(EventBase):
    """A point in a stream's work.

    Examples
    --------
    >>> event = cuda.event()
    >>> event.record()
    >>> event.synchronize()
    >>> event.query()
    True
    """

    def __new__(cls, timing: bool = True) -> Self:
        """Make an event; with ``timing=False`` one that costs less and has no time."""
        return super().__new__(cls, timing)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _missing("Event", self, name)


def _missing(what: str, owner: object, name: str) -> Exception:
    """Make the error of an attribute that a stream or an event does not have."""
    from weft._missing import missing

    return missing(f"{what!r} object", f"weft.cuda.{what}.{name}", dir(owner))


def stream() -> Stream:
    """Make a new stream on the current device.

    Returns
    -------
    Stream
        Its work can overlap with that of other streams.

    Raises
    ------
    DriverError
        The driver makes none.

    Examples
    --------
    >>> stream = cuda.stream()
    >>> x = cuda.to_device(np.ones(100), stream=stream)
    >>> scale[1, 128, stream](x, 2.0)
    >>> x.copy_to_host(stream=stream).sum()
    np.float64(200.0)
    """
    return Stream()


def default_stream() -> Stream:
    """Give the default stream, of the device that is current when it is used.

    Returns
    -------
    Stream
        The stream used if no stream is given.

    Examples
    --------
    >>> scale[1, 32, cuda.default_stream()](np.ones(3), 2.0)
    """
    return Stream(handle=0)


def legacy_default_stream() -> Stream:
    """Give the default stream that all threads share.

    Returns
    -------
    Stream
        CUDA's ``cudaStreamLegacy``.

    Examples
    --------
    >>> cuda.legacy_default_stream()
    <Legacy default CUDA stream>
    """
    return Stream(handle=1)


def per_thread_default_stream() -> Stream:
    """Give the default stream of the calling thread.

    Returns
    -------
    Stream
        CUDA's ``cudaStreamPerThread``.

    Examples
    --------
    >>> cuda.per_thread_default_stream()
    <Per-thread default CUDA stream>
    """
    return Stream(handle=2)


def external_stream(ptr: int) -> Stream:
    """Wrap a stream of another library by its handle; it is not destroyed.

    Parameters
    ----------
    ptr
        The handle: an address, as CuPy's ``stream.ptr`` and PyTorch's ``stream.cuda_stream`` are.

    Returns
    -------
    Stream
        Launches and copies accept it like weft's streams.

    Raises
    ------
    TypeError
        It is not an integer.
    ValueError
        It is negative, or has more than 64 bits.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> stream = cuda.external_stream(cupy.cuda.Stream().ptr)  # doctest: +SKIP
    """
    if not isinstance(ptr, int):
        msg = f"ptr for external stream must be an int, not {type(ptr).__name__}"
        raise TypeError(msg)
    if not 0 <= ptr < 1 << 64:
        msg = f"ptr for external stream must be the handle of a stream, an address, not {ptr}"
        raise ValueError(msg)
    return Stream(handle=ptr)


def as_stream(stream: Any) -> Any:
    """Give what ``array.stream`` is of a ``stream=`` argument: a stream of weft's, or 0.

    A stream of another library is wrapped, and the wrapper holds a reference to it: an object with
    ``__cuda_stream__`` (CUDA's stream protocol), with ``cuda_stream`` as in PyTorch, or with ``ptr`` as in CuPy.
    """
    if not stream or isinstance(stream, StreamBase):
        return stream or 0
    wrapped = Stream(handle=stream_handle(stream))
    wrapped._of = stream
    return wrapped


def event(timing: bool = True) -> Event:
    """Make a new event.

    Parameters
    ----------
    timing
        False makes one that costs less and has no time.

    Returns
    -------
    Event
        Recorded nowhere yet.

    Examples
    --------
    >>> done = cuda.event(timing=False)
    >>> done.record()
    >>> done.synchronize()
    """
    return Event(timing)


def event_elapsed_time(start: Event, end: Event) -> float:
    """Give the time between two recorded events in milliseconds.

    Parameters
    ----------
    start, end
        Events that were recorded, and that the streams have reached.

    Returns
    -------
    float
        Milliseconds.

    Raises
    ------
    EventError
        One was not recorded, not reached yet, or made with ``timing=False``.

    Examples
    --------
    >>> start, end = cuda.event(), cuda.event()
    >>> start.record()
    >>> scale[1, 32](cuda.to_device(np.ones(3)), 2.0)
    >>> end.record()
    >>> end.synchronize()
    >>> cuda.event_elapsed_time(start, end) > 0
    True
    """
    return start.elapsed_time(end)
