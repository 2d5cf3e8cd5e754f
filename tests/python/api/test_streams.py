"""Streams and events."""

from __future__ import annotations

import asyncio
import threading
import warnings

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_launches_on_a_stream():
    stream = cuda.stream()
    x = cuda.to_device(np.zeros(1000), stream=stream)
    for _ in range(10):
        add_one[8, 128, stream](x)
    host = x.copy_to_host(stream=stream)
    stream.synchronize()
    assert (host == 10).all()


def test_default_streams():
    x = cuda.to_device(np.zeros(4))
    add_one[1, 4, 0](x)
    add_one[1, 4, cuda.default_stream()](x)
    cuda.synchronize()
    assert x.copy_to_host().tolist() == [2] * 4


def test_a_foreign_stream_is_only_asked_about_when_it_is_used():
    stream = cuda.external_stream(0x12345678)  # not a valid handle: a driver call with it would crash the process
    assert int(stream) == 0x12345678
    assert int(stream.handle) == 0x12345678
    assert "305419896" in repr(stream)


def test_launches_of_one_stream_keep_their_order():
    x = cuda.to_device(np.zeros(1 << 16))

    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        x[i] = x[i] * 2

    for _ in range(8):
        add_one[256, 256](x)
        double[256, 256](x)
    expected = 0
    for _ in range(8):
        expected = (expected + 1) * 2
    assert (x.copy_to_host() == expected).all()


def test_auto_synchronize():
    stream = cuda.stream()
    x = np.zeros(4)
    with stream.auto_synchronize():
        d = cuda.to_device(x, stream=stream)
        add_one[1, 4, stream](d)
        d.copy_to_host(x, stream=stream)
    assert x.tolist() == [1] * 4


def test_events():
    start, end = cuda.event(), cuda.event()
    x = cuda.to_device(np.zeros(1 << 16))
    start.record()
    for _ in range(5):
        add_one[256, 256](x)
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    assert cuda.event_elapsed_time(start, end) == start.elapsed_time(end)


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * 2


def test_streams_and_events() -> None:
    stream = cuda.stream()
    start, end = cuda.event(), cuda.event()
    x = cuda.to_device(np.ones(10), stream=stream)
    start.record(stream)
    with stream.auto_synchronize():
        double[1, 32, stream](x)
    end.record(stream)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert cuda.event_elapsed_time(start, end) == start.elapsed_time(end)
    assert end.query()
    end.wait(stream)
    assert (x.copy_to_host(stream=stream) == 2).all()
    assert int(cuda.default_stream()) == 0
    assert cuda.default_stream().handle.value == 0
    assert repr(cuda.default_stream()) == "<Default CUDA stream>"
    done = threading.Event()
    stream.add_callback(lambda which, status, arg: done.set() if (which, status, arg) == (stream, 0, 1) else None, 1)
    assert done.wait(5)
    double[1, 32, cuda.default_stream()](x)
    assert (x.copy_to_host() == 4).all()


def test_streams_of_other_libraries_say_so() -> None:
    assert cuda.external_stream(0x12345678).external
    for own in (cuda.stream(), cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()):
        assert not own.external


class Protocol:
    """A stream of another library, with CUDA's stream protocol."""

    def __init__(self, of, version=0) -> None:
        self.told = (version, int(of))

    def __cuda_stream__(self):
        return self.told


class OldProtocol:
    """The same protocol as in the first versions of cuda.core."""

    def __init__(self, of) -> None:
        self.__cuda_stream__ = (0, int(of))


class Torch:
    def __init__(self, of) -> None:
        self.cuda_stream = int(of)

    def synchronize(self) -> None:
        raise AssertionError


class Cupy:
    def __init__(self, of) -> None:
        self.ptr = int(of)

    def synchronize(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("wrap", [Protocol, OldProtocol, Torch, Cupy])
def test_streams_of_other_libraries(wrap) -> None:
    own = cuda.stream()
    for of in (own, cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()):
        stream = wrap(of)
        x = cuda.to_device(np.zeros(4), stream=stream)
        assert int(x.stream) == int(of)
        configured = add_one[1, 4, stream]
        assert configured.stream is stream
        configured(x)
        configured(x)
        add_one.forall(4, stream=stream)(x)
        y = cuda.device_array_like(x, stream=stream)
        y.copy_to_device(x, stream=stream)
        assert (y.copy_to_host(stream=stream) == 3).all()
        assert x[:2].copy_to_host().tolist() == [3, 3]
        assert cuda.mapped_array(3, stream=stream).copy_to_host().shape == (3,)
        event = cuda.event()
        event.record(stream)
        event.wait(stream)
        event.synchronize()
        del x, y


def test_the_array_interface_names_the_stream_of_another_library() -> None:
    own = cuda.stream()
    x = cuda.to_device(np.zeros(4)).bind(Protocol(own))
    if hasattr(x, "__cuda_array_interface__"):
        assert x.__cuda_array_interface__["stream"] == int(own)


class Memory:
    ptr = 0x1000


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ("stream", "a stream must be 0, a weft.cuda stream, or an object with `__cuda_stream__`, .* not str"),
        (7, "a stream must be .* not int"),
        (Memory(), "a stream must be .* not Memory"),
        (Protocol(0, version=1), "`__cuda_stream__` of a stream has version 1, but weft supports only version 0"),
        (type("S", (), {"__cuda_stream__": lambda _: "no"})(), "must return a version and a handle, .* not 'no'"),
    ],
)
def test_what_is_no_stream(wrong, text) -> None:
    x = cuda.to_device(np.zeros(4))
    for use in (
        lambda: add_one[1, 4, wrong](x),
        lambda: add_one.forall(4, stream=wrong)(x),
        lambda: x.copy_to_host(stream=wrong),
        lambda: cuda.to_device(np.zeros(4), stream=wrong),
        lambda: cuda.mapped_array(4, stream=wrong),
        lambda: cuda.event().record(wrong),
        lambda: cuda.event().wait(wrong),
    ):
        with pytest.raises(TypeError, match=text):
            use()


def test_what_streams_are_called() -> None:
    assert repr(cuda.default_stream()) == "<Default CUDA stream>"
    assert repr(cuda.legacy_default_stream()) == "<Legacy default CUDA stream>"
    assert repr(cuda.per_thread_default_stream()) == "<Per-thread default CUDA stream>"
    assert repr(cuda.external_stream(0x12345678)) == "<External CUDA stream 305419896>"
    own = cuda.stream()
    assert repr(own) == f"<CUDA stream {int(own)}>"


def test_a_stream_is_awaited() -> None:
    async def wait_for_two():
        first, second = cuda.stream(), cuda.stream()
        x, y = np.zeros(4), np.ones(4)
        a, b = cuda.to_device(x, stream=first), cuda.to_device(y, stream=second)
        add_one[1, 4, first](a)
        add_one[1, 4, second](b)
        futures = [first.async_done(), second.async_done()]
        assert all(isinstance(future, asyncio.Future) for future in futures)
        done = await asyncio.gather(*futures)
        assert done == [first, second]
        canceled = first.async_done()
        canceled.cancel()
        await second.async_done()
        assert a.copy_to_host().tolist() == [1] * 4
        assert b.copy_to_host().tolist() == [2] * 4

    asyncio.run(wait_for_two())
    with pytest.raises(RuntimeError, match="running"):
        cuda.stream().async_done()


def test_what_a_callback_raises_is_a_warning() -> None:
    stream, said = cuda.stream(), threading.Event()
    texts = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: (texts.append(str(message)), said.set())
        stream.add_callback(lambda *_: 1 // 0)
        assert said.wait(5)
    assert "ZeroDivisionError" in texts[0]


def test_times_that_events_do_not_have() -> None:
    early, never, untimed = cuda.event(), cuda.event(), cuda.event(timing=False)
    early.record()
    untimed.record()
    cuda.synchronize()
    for start, end in ((early, never), (never, early), (untimed, early), (early, untimed)):
        for error in (cuda.CudaAPIError, ValueError):
            with pytest.raises(error, match=r"an event|invalid resource handle") as raised:
                start.elapsed_time(end)
            assert raised.value.code == 400
    assert untimed.query()
