"""Ctrl-C ends infinite loops in kernels, in all execution modes of the CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")]

PROGRAM = """
import os, signal, sys, time
import numpy as np
from weft import cuda

@cuda.jit
def one_thread(x):
    while True:
        pass

@cuda.jit
def before_a_barrier(x):
    s = cuda.shared.array(64, np.int64)
    t = cuda.threadIdx.x
    j = 0
    if t == 5:
        while j >= 0:
            j = (j * 5 + 1) % 1001
    s[t] = j
    cuda.syncthreads()
    x[0] = s[63 - t] + 1

@cuda.jit
def around_a_barrier(x):
    while x.size > 0:
        cuda.syncthreads()
    x[0] = 1

@cuda.jit
def spin(v):
    while v >= 0:
        v = (v * 5 + 1) % 1001
    return v

@cuda.jit
def twice(v):
    return spin(v) - spin(v + 1)

@cuda.jit
def in_a_function(x):
    x[twice(cuda.threadIdx.x)] = 1

@cuda.jit
def nested(x):
    s = 0
    for i in range(1_000_000 * x.size):
        for j in range(1_000_000):
            s = s * 3 ^ (i + j)
    x[0] = s | 1

@cuda.jit
def for_a_flag(x):
    for i in range(1 << 60):
        if cuda.atomic.add(x, 1, 0) == 1:
            break
    x[0] = 1

@cuda.jit
def in_grid(x):
    i = cuda.grid(1)
    while i < 1 << 40:
        j = 7
        while j != 0:
            j = j * 5 % 1001 + 1
        i += cuda.gridsize(1)
    x[0] = 1

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
launches = [
    (one_thread, 1, 1), (one_thread, 3, 40), (before_a_barrier, 1, 64), (before_a_barrier, 9, 64),
    (around_a_barrier, 2, 64), (in_a_function, 1, 1), (in_a_function, 5, 33), (nested, 1, 1), (nested, 70, 7),
    (for_a_flag, 1, 2), (in_grid, 1, 1), (in_grid, 200, 64),
]
for kernel, grid, block in launches:
    name = kernel.__name__
    x = cuda.to_device(np.zeros(64, np.int64))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    begin = time.monotonic()
    try:
        kernel[grid, block](x)
    except KeyboardInterrupt:
        took = time.monotonic() - begin
        assert took < 20, (name, grid, block, took)
        assert x.copy_to_host()[0] == 0, name
    else:
        raise AssertionError(f"{name} ended")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

@cuda.jit
def cost(x, n):
    s = 0
    for i in range(n):
        s = s * 3 ^ i
    x[cuda.grid(1) % x.size] = s

# Launches that cost little say nothing about one that costs much.
for _ in range(5):
    cost[1 << 16, 1](x, 1)
signal.setitimer(signal.ITIMER_REAL, 0.3)
begin = time.monotonic()
try:
    cost[1 << 16, 1](x, 100_000_000)
except KeyboardInterrupt:
    assert time.monotonic() - begin < 20
else:
    raise AssertionError("it ended")
print("passed")
"""


@pytest.mark.parametrize("strategy", ["loops", "fibers", "auto"])
def test_control_c_ends_a_kernel_that_would_not_end(tmp_path, strategy: str) -> None:
    path = tmp_path / "endless.py"
    path.write_text(PROGRAM, encoding="utf-8")
    env = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_CPU_STRATEGY": strategy, "WEFT_CPU_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", str(path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "passed\n", done.stdout + done.stderr
