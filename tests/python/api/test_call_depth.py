"""A stack overflow ends the launch with an error, and the process continues."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import weft
from weft import cuda

pytestmark = pytest.mark.cpu


@cuda.jit(device=True)
def sink(x, n):
    if n <= 0:
        return 1
    return (sink(x, n - 1) ^ x[n % x.size]) * 3 + n


@cuda.jit
def deep(x, n, out):
    i = cuda.grid(1)
    out[i] = sink(x, n if i == n % 7 else 5)


@cuda.jit(device=True)
def met(n):
    if n > 0:
        cuda.syncthreads()
        return met(n - 1) * 3 + n
    return 0


@cuda.jit
def deep_at_barriers(n, out):
    out[cuda.grid(1)] = met(n)


def launches() -> None:
    """Launches that overflow the stack, and then one that does not, on this thread."""
    x = np.arange(1, 8)
    for blocks in (1, 300):
        out = np.zeros(blocks * 8, np.int64)
        with pytest.raises(weft.LaunchError, match="the calls of `deep` go deeper than the stack of a thread"):
            deep[blocks, 8](x, 10**9, out)
        deep[blocks, 8](x, 700, out)
        assert (out != 0).all()
    with pytest.raises(weft.LaunchError, match="the calls of `deep_at_barriers` go deeper than the stack of a thread"):
        deep_at_barriers[2, 32](10**7, np.zeros(64, np.int64))
    out = np.zeros(64, np.int64)
    deep_at_barriers[2, 32](1000, out)
    assert (out == out[0]).all()
    assert out[0] != 0


def test_calls_that_go_too_deep_are_an_error():
    launches()


@pytest.mark.parametrize("kib", [256, 1024])
def test_on_a_small_thread(kib):
    failed = []

    def run() -> None:
        x = np.arange(1, 8)
        try:
            with pytest.raises(weft.LaunchError, match="deeper"):
                deep[1, 8](x, 10**9, np.zeros(8, np.int64))
            deep[1, 8](x, 100, np.zeros(8, np.int64))
        except BaseException as error:
            failed.append(error)

    old = threading.stack_size(kib << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(old)
    thread.join()
    assert not failed


@pytest.mark.parametrize("strategy", ["loops", "fibers"])
def test_whatever_the_strategy(strategy):
    env = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_CPU_STRATEGY": strategy}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    launches()
