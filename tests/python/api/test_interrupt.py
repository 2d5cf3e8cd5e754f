"""Signals while a kernel runs on the CPU: their handlers run, and an exception of a handler ends the launch."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from weft import cuda

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")]


@cuda.jit
def count(out, n):
    total = 0.0
    for i in range(n):
        total += (i * 0.5) % 3.0
    out[cuda.blockIdx.x] = total + 1.0


@pytest.fixture
def alarm():
    """Calls a handler after a number of seconds."""
    before = signal.getsignal(signal.SIGALRM)

    def start(handler, seconds):
        signal.signal(signal.SIGALRM, lambda *_: handler())
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Enough(Exception):
    pass


def test_a_launch_of_many_blocks_can_be_interrupted(alarm) -> None:
    def handler() -> None:
        raise Enough

    out = np.zeros(1 << 20)
    device = cuda.to_device(out)
    count[1, 1](device, 1)
    # A large array is written in place unless a copy is requested; an interrupted launch does not copy back.
    for target in (cuda.InOut(out), device, device):
        alarm(handler, 0.3)
        begin = time.monotonic()
        with pytest.raises(Enough):
            # More than half an hour, unless it is interrupted.
            count[1 << 20, 1](target, 1_000_000)
        assert time.monotonic() - begin < 30
    assert not out.any()
    assert 0 < np.count_nonzero(device.copy_to_host()) < 1 << 20
    # All threads have ended, and the next launch works.
    count[1 << 20, 1](out, 1)
    assert (out == 1).all()


def test_control_c(alarm) -> None:
    # A process that is started in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm(lambda: os.kill(os.getpid(), signal.SIGINT), 0.3)
    out = cuda.device_array(1 << 20)
    try:
        with pytest.raises(KeyboardInterrupt):
            count[1 << 20, 1](out, 1_000_000)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_raises_nothing_lets_the_launch_go_on(alarm) -> None:
    seen: list[float] = []
    inner, out = np.zeros(64), np.zeros(300)

    def handler() -> None:
        # A nested launch.
        count[64, 1](inner, 1)
        seen.append(inner.sum())

    alarm(handler, 0.2)
    begin = time.monotonic()
    launches = 0
    while not seen and time.monotonic() - begin < 30:
        count[300, 1](out, 1_000_000)
        launches += 1
    assert seen == [64.0]
    assert (out == out[0]).all()
    assert out[0] > 1


def test_other_threads_are_not_disturbed(alarm) -> None:
    def handler() -> None:
        raise Enough

    results = []

    def launch() -> None:
        mine = np.zeros(200)
        count[200, 1](mine, 200_000)
        results.append(mine.min())

    count[1, 1](np.zeros(1), 1)
    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    alarm(handler, 0.2)
    with pytest.raises(Enough):
        count[1 << 20, 1](np.zeros(1 << 20), 1_000_000)
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert min(results) > 1
