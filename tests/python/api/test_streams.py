"""Streams and events."""

from __future__ import annotations

import threading

import numpy as np
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
    stream = cuda.external_stream(0x12345678)  # which no stream has: a driver that is asked ends the process
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
