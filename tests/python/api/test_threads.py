"""64 threads that compile and launch at once: the same kernel, different ones, wrong ones; and a fork meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from harness import module
from weft import cuda
from weft.errors import CompileError

THREADS = 64
KERNEL = """
from weft import cuda

@cuda.jit
def kernel(r, x):
    i = cuda.grid(1)
    if i < r.size:
        s = {number}.0
        for j in range(i):
            s += x[j]
        r[i] = s
"""


def fresh(number: int):
    return module(KERNEL.format(number=number)).kernel


def at_once(work) -> list:
    """What `work(n)` gives in each of the threads, which begin together."""
    start = threading.Barrier(THREADS)

    def begin(number: int):
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def launched(kernel) -> list[float]:
    r, x = np.zeros(40), np.arange(40.0)
    kernel[2, 32](r, x)
    return r.tolist()


def expected(number: int) -> list[float]:
    return [number + i * (i - 1) / 2 for i in range(40)]


def test_the_same_kernel() -> None:
    kernel = fresh(3)
    assert at_once(lambda _: launched(kernel)) == [expected(3)] * THREADS
    assert len(kernel.overloads) == 1


def test_different_kernels_and_some_the_same() -> None:
    kernels = [fresh(number) for number in range(8)]
    results = at_once(lambda number: launched(kernels[number % 8]))
    assert results == [expected(number % 8) for number in range(THREADS)]


def test_different_types_of_one_kernel() -> None:
    kernel = fresh(1)
    types = [np.int8, np.int16, np.int32, np.int64, np.float32, np.float64, np.uint8, np.uint16]

    def work(number: int) -> list[float]:
        r, x = np.zeros(8), np.ones(8, types[number % 8])
        kernel[1, 32](r, x)
        return r.tolist()

    assert at_once(work) == [[1.0 + i for i in range(8)]] * THREADS
    assert len(kernel.overloads) == 8


def test_everyone_is_told_of_an_error() -> None:
    wrong = module("from weft import cuda\n\n@cuda.jit\ndef kernel(x):\n    x[0] = nowhere\n").kernel

    def work(_: int) -> str:
        with pytest.raises(CompileError) as error:
            wrong[1, 1](np.zeros(1))
        return str(error.value)

    messages = at_once(work)
    assert "nowhere" in messages[0]
    assert set(messages) == {messages[0]}


def test_a_kernel_made_again_has_the_values_of_its_time() -> None:
    def make(n):
        @cuda.jit
        def kernel(r):
            r[0] = n

        return kernel

    r = np.zeros(1)
    for n in (1, 2, 1, 1.5, True, 1):
        make(n)[1, 1](r)
        assert r[0] == n


# Threads do something, and meanwhile the process forks: the children must be able to do it, too.
FORKS = """
import os, signal, threading
import numpy as np
from weft import cuda

{work}

stop = False
def begin(n):
    while not stop:
        n += 4
        work(n)
threads = [threading.Thread(target=begin, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        assert FIRST in (None, work(0))
        for n in range(1000, 1003):
            work(n)
        os._exit(0)
    children.append(pid)
stop = True
for thread in threads:
    thread.join()
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
print("done")
"""

COMPILES = """
def work(n):
    @cuda.jit
    def kernel(r):
        i = cuda.grid(1)
        s = 0.0
        for j in range(i):
            s += r[j] * n
        r[i] = s + n
    return kernel.inspect_asm("void(float32[:])")
FIRST = work(0)
"""

# The first one to type them has weft's own functions parsed.
TYPES = """
def work(n):
    @cuda.jit(device=True)
    def function(x):
        y = cuda.libdevice.sin(x) + np.arctan2(x, n) + np.maximum(x, n) + np.spacing(x) + np.sinc(x)
        return y + cuda.coop.block.sum(x) + cuda.coop.warp.sum(x)
    return function.result_type("(float64,)")
FIRST = None
"""


@pytest.mark.parametrize("work", [COMPILES, TYPES], ids=["compile", "type"])
def test_a_fork_while_others_work(tmp_path, work: str) -> None:
    environment = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_CPU_THREADS": "1"}
    script = tmp_path / "forks.py"
    script.write_text(FORKS.format(work=work))
    command = [sys.executable, "-W", "ignore", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
