"""Ten thousand repetitions use no more memory than a thousand."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import weft
from weft import cuda

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MB = 1 << 20


def resident() -> int:
    """The resident set size of this process in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def growth(turn, *, first: int, then: int) -> int:
    """The growth of the process in all iterations after the first ones, which include one-time allocations."""
    for _ in range(first):
        turn()
    grown = []
    for _ in range(2):
        before = resident()
        for _ in range(then):
            turn()
        grown.append(resident() - before)
    return min(grown)


@cuda.jit
def add(a, b, n):
    i = cuda.grid(1)
    if i < n:
        a[i] += b[i]


def test_launches_and_arrays() -> None:
    host = np.ones(1000)

    def turn() -> None:
        a, b = cuda.to_device(host), cuda.device_array(1000)
        add[4, 256](a, b, 1000)
        add[4, 256](host, host, 1000)
        a.copy_to_host()

    free = cuda.current_context().get_memory_info().free
    assert growth(turn, first=1000, then=10_000) < 2 * MB
    # With other test processes on the machine, memory cannot be attributed.
    assert "PYTEST_XDIST_WORKER" in os.environ or free - cuda.current_context().get_memory_info().free < 64 * MB


def test_streams_events_and_graphs() -> None:
    a = cuda.to_device(np.ones(1000))

    def turn() -> None:
        stream, event = cuda.stream(), cuda.event()
        with cuda.graph() as graph:
            add[4, 256](a, a, 1000)
        graph.launch(stream)
        event.record(stream)
        event.synchronize()

    assert growth(turn, first=300, then=3000) < 2 * MB


def test_what_device_arrays_compute() -> None:
    a = cuda.to_device(np.arange(1000.0))

    def turn() -> None:
        b = (a + 1)[a > 3]
        b[::2] = b[1::2].sum()
        b[[0, -1]].astype(np.float32).copy_to_host()

    assert growth(turn, first=100, then=500) < 2 * MB


def test_errors() -> None:
    host = np.ones(10)

    def turn() -> None:
        for wrong in (lambda: add[4, 256](host, object(), 1000), lambda: add[4, 4096](host, host, 10)):
            with pytest.raises((TypeError, weft.LaunchError), match=r"kernel `add`|threads"):
                wrong()

    assert growth(turn, first=200, then=2000) < 2 * MB


def test_kernels_that_are_made_and_forgotten() -> None:
    host = np.ones(1)
    numbers = iter(range(10_000))

    def turn() -> None:
        number = next(numbers)

        @cuda.jit(cache=False)
        def kernel(a) -> None:
            a[0] += number

        kernel[1, 1](host)

    # The compiler caches compiled code up to a limit, about ten kilobytes per entry.
    assert growth(turn, first=30, then=100) < 100 * 100 * 1024


def test_many_threads_launch_and_compile() -> None:
    """64 concurrent threads, each with its own arrays and kernel, and one shared kernel."""
    start = threading.Barrier(64)
    wrong = []

    def work(number: int) -> None:
        @cuda.jit
        def own(a) -> None:
            i = cuda.grid(1)
            if i < a.size:
                a[i] = 2 * a[i] + number % 4

        a = cuda.to_device(np.full(100, float(number)))
        ones = cuda.to_device(np.ones(100))
        start.wait()
        for _ in range(20):
            add[1, 128](a, ones, 100)
        own[1, 128](a)
        expected = 2.0 * (number + 20) + number % 4
        if not np.array_equal(a.copy_to_host(), np.full(100, expected)):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
