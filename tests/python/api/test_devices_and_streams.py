"""Devices, contexts, streams and events."""

import numpy as np
import pytest
from weft import cuda


def test_is_available():
    assert cuda.is_available() in (True, False)


def test_detect(capfd):
    cuda.detect()
    assert capfd.readouterr().out.strip()


def test_current_device(device):
    current = cuda.get_current_device()
    assert current.id == 0
    assert current.name
    major, minor = current.compute_capability
    assert (major, minor) >= (5, 0)
    assert current.MAX_THREADS_PER_BLOCK == 1024
    assert current.WARP_SIZE == 32
    assert current.MULTIPROCESSOR_COUNT >= 1
    assert current.MAX_SHARED_MEMORY_PER_BLOCK >= 48 * 1024
    with pytest.raises(AttributeError):
        current.NO_SUCH_ATTRIBUTE  # noqa: B018
    assert ("cuda" in repr(current).lower()) == (device == "cuda")


@pytest.mark.cpu
def test_the_cpu_answers_with_a_capability():
    assert cuda.get_current_device().compute_capability == (9, 0)


def test_select_device():
    assert cuda.select_device(0).id == 0
    with pytest.raises(IndexError):
        cuda.select_device(4096)
    assert cuda.get_current_device().id == 0
    assert len(cuda.gpus) >= 1
    with cuda.gpus[0]:
        assert cuda.get_current_device().id == 0


def test_context():
    context = cuda.current_context()
    context.synchronize()
    memory = context.get_memory_info()
    assert 0 < memory.free <= memory.total


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
