"""Kernels, streams, events, errors and other libraries' arrays on a machine with two GPUs. See `test_fake_gpus.py`."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from harness import module
from weft import LaunchError, cuda

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def first_of_two():
    if len(cuda.gpus) < 2:
        pytest.skip("there is one GPU")
    cuda.select_device(0)
    yield
    cuda.select_device(0)


@cuda.jit
def add(x, n):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += n


@cuda.jit
def spin(x, turns):
    for _ in range(turns):
        x[0] = x[0] * 3 % 1000003


@cuda.jit(exceptions=True)
def raises(x):
    if x.size == 4:
        raise KeyError("four")


def test_each_device_has_arrays_and_kernels_of_its_own():
    here = cuda.to_device(np.arange(1000))
    with cuda.gpus[1]:
        there = cuda.to_device(np.arange(1000))
        add[4, 256](there, 7)
        assert there.copy_to_host().tolist() == list(range(7, 1007))
        on_host = np.zeros(1000)
        add[4, 256](on_host, 5)
        assert (on_host == 5).all()
        with pytest.raises(LaunchError, match="the array is on device 0, but the current device is 1"):
            add[4, 256](here, 7)
    add[4, 256](here, 3)
    with pytest.raises(LaunchError, match="the array is on device 1, but the current device is 0"):
        add[4, 256](there, 7)
    assert here.copy_to_host().tolist() == list(range(3, 1003))
    # Copies determine the devices of source and destination.
    here.copy_to_device(there)
    assert here.copy_to_host().tolist() == list(range(7, 1007))
    assert there[10:20].copy_to_host().tolist() == list(range(17, 27))


def test_default_streams_and_events_mean_the_current_device():
    default, own = cuda.default_stream(), cuda.per_thread_default_stream()
    begin, end = cuda.event(), cuda.event()
    with cuda.gpus[1]:
        x = cuda.to_device(np.ones(4, np.int64))
        for stream in (default, own, cuda.stream()):
            before = x.copy_to_host(stream=stream)
            spin[1, 1, stream](x, 200_000)
            add[1, 4, stream](x, 1)
            after = x.copy_to_host(stream=stream)
            assert (after[1:] == before[1:] + 1).all()
            stream.synchronize()
        there = cuda.event(), cuda.event()
        there[0].record()
        spin[1, 1](x, 2_000_000)
        there[1].record()
        there[1].synchronize()
        assert cuda.event_elapsed_time(*there) > 1
        with pytest.raises(ValueError, match="the event belongs to device 0, but the work is for device 1"):
            begin.record()
    begin.record()
    # The first device waits for the second one.
    there[1].wait()
    end.record()
    end.synchronize()


def test_a_stream_of_another_device_is_refused():
    stream = cuda.stream()
    with cuda.gpus[1]:
        x = cuda.to_device(np.zeros(4))
        with pytest.raises((ValueError, LaunchError), match="device"):
            add[1, 4, stream](x, 1)
        assert not x.copy_to_host().any()


def test_a_fault_is_told_on_its_device():
    with cuda.gpus[1]:
        there = cuda.to_device(np.zeros(4))
        raises[1, 1](there)
    here = cuda.to_device(np.zeros(4))
    add[1, 4](here, 1)
    cuda.synchronize()
    assert here.copy_to_host().tolist() == [1] * 4
    with cuda.gpus[1]:
        with pytest.raises(KeyError, match="four"):
            cuda.synchronize()
        add[1, 4](there, 2)
        assert there.copy_to_host().tolist() == [2] * 4


def test_threads_with_a_device_each():
    results = {}

    def work(device: int) -> None:
        cuda.select_device(device)
        x = cuda.to_device(np.zeros(5000))
        for n in range(200):
            add[20, 256](x, n % 7)
        results[device] = x.copy_to_host(), cuda.get_current_device().id

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for device, (x, current) in results.items():
        assert current == device
        assert (x == sum(n % 7 for n in range(200))).all()


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_of_other_libraries(library):
    module = pytest.importorskip(library)
    second = module.cuda.device(1) if library == "torch" else module.cuda.Device(1)

    def total() -> float:
        with second:
            return float(there.sum())

    with second:
        there = module.zeros(100, device="cuda") if library == "torch" else module.zeros(100, dtype="f4")
    with cuda.gpus[1]:
        add[1, 128](there, 3)
        cuda.synchronize()
    assert total() == 300
    # With peer access, kernels of the first device can access it.
    told = ""
    try:
        add[1, 128](there, 3)
        cuda.synchronize()
    except LaunchError as error:
        told = str(error)
    assert not told or "the array is on device 1, but the current device is 0" in told
    assert total() == (300 if told else 600)
    x = cuda.to_device(np.zeros(4))
    add[1, 4](x, 1)
    assert x.copy_to_host().tolist() == [1] * 4


@cuda.jit("void(float32[:])")
def declared(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_a_declared_kernel_runs_on_each_device():
    for device in cuda.gpus.lst[:2]:
        with device:
            x = np.zeros(4, np.float32)
            declared[1, 32](x)
            np.testing.assert_array_equal(x, 1)


def test_a_function_that_stays_on_its_device():
    @cuda.require_context
    def leave():
        with cuda.gpus[1]:
            pass

    with cuda.gpus[0], pytest.raises(RuntimeError, match="Cannot switch CUDA-context"):
        leave()
    with cuda.gpus[1]:
        leave()


SMOOTH = """
from weft import cuda

@cuda.jit
def smooth(source, target):
    total = 0.0
    y, x = cuda.grid(2)
    if 0 < y < source.shape[0] - 1 and 0 < x < source.shape[1] - 1:
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                total += source[y + dy, x + dx]
        target[y, x] = total
"""


def settled(kernel, launch, seconds=20.0):
    """Launches until the choice of coarsening on the current device is made; its line of `explain()`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(16):
            launch()
        cuda.synchronize()
        chosen = [line.strip() for line in kernel.explain().splitlines() if "is used" in line]
        if chosen:
            return chosen
        time.sleep(0.02)
    return [kernel.explain()]


@pytest.mark.parametrize("together", [False, True])
def test_each_device_measures_coarsening_for_itself(together):
    kernel = module(SMOOTH).smooth
    n = 4096
    source = np.arange(n * n, dtype=np.float32).reshape(n, n) % 101
    expected = sum(source[1 + dy : n - 1 + dy, 1 + dx : n - 1 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    chosen, wrong = {}, []

    def work(device: int) -> None:
        cuda.select_device(device)
        here, target = cuda.to_device(source), cuda.to_device(np.zeros_like(source))
        launch = lambda: kernel[(n // 16, n // 16), (16, 16)](here, target)  # noqa: E731
        chosen[device] = settled(kernel, launch)
        target.copy_to_device(np.zeros_like(source))
        launch()
        if not (target.copy_to_host()[1:-1, 1:-1] == expected).all():
            wrong.append(device)

    if together:
        threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for device in (0, 1):
            work(device)
    assert wrong == []
    assert sorted(chosen) == [0, 1]
    assert all("is used" in lines[0] for lines in chosen.values()), chosen
