"""64 threads that compile and launch concurrently: the same kernel, different ones, wrong ones; concurrent forks."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from harness import module
from weft import cuda
from weft._source import Text
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
    """The results of `work(n)` in threads that start at the same time."""
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


def test_threads_decode_one_file(monkeypatch) -> None:
    text, lines = Text(None, b"x = 1\n# coding: utf-8"), ["x = 1\n", "# coding: utf-8\n"]
    other = []

    def interrupted(name: str, *args: object) -> object:
        # While one thread imports the decoder, another one has it already, and finishes.
        if name == "importlib.util" and not other:
            other.append(None)
            other[0] = text.lines()
        return importing(name, *args)

    importing = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert text.lines() == lines
    assert other == [lines]


# The process forks while threads run some operation: the children must be able to run it, too.
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

# The first thread that types them parses weft's own functions. Python's modules are imported before: a fork during an
# import hangs in Python itself.
TYPES = """
@cuda.jit(device=True)
def plain(x):
    return x
plain.result_type("(float64,)")

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
    forking(tmp_path, FORKS.format(work=work), WEFT_CPU_THREADS="1")


def forking(tmp_path, program: str, **environment: str) -> None:
    """A program that forks, and prints a line at the end."""
    script = tmp_path / "forks.py"
    script.write_text(program)
    command = [sys.executable, "-W", "ignore", script]
    environment = os.environ | {"WEFT_DEVICE": "cpu"} | environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_fork_while_a_kernel_prints(tmp_path) -> None:
    """Unread output fills a pipe, so that the launch in the parent does not end."""
    program = """
import os, signal, threading
import numpy as np
from weft import cuda

@cuda.jit
def talk(n):
    for i in range(n):
        print(i)

@cuda.jit
def add(x):
    x[cuda.grid(1)] += 1

own = os.dup(1)
into, out = os.pipe()
os.dup2(out, 1)
talk[1, 1](1)
add[1, 4](np.zeros(4))
printing = threading.Thread(target=lambda: talk[1, 1](200000))
printing.start()
begun = os.read(into, 64)
while len(begun) < 64:
    begun += os.read(into, 64)
children = []
for _ in range(5):
    from_child, to_parent = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        os.dup2(to_parent, 1)
        x = np.zeros(4)
        add[1, 4](x)
        talk[1, 1](3)
        os._exit(0 if x.tolist() == [1] * 4 else 1)
    os.close(to_parent)
    children.append((pid, from_child))
for pid, from_child in children:
    assert os.waitpid(pid, 0)[1] == 0
    # The parent writes the output of its own kernel.
    assert os.read(from_child, 1 << 20) == b"0\\n1\\n2\\n"
rest = threading.Thread(target=lambda: begun_with(begun))

def begun_with(text):
    while not text.endswith(b"\\n199999\\n"):
        text += os.read(into, 1 << 16)
    assert text == b"0\\n" + b"".join(b"%d\\n" % i for i in range(200000))
    os.write(own, b"done\\n")

rest.start()
printing.join()
rest.join()
"""
    forking(tmp_path, program)


def test_a_fork_while_others_link_and_open_devices(tmp_path) -> None:
    program = """
import os, signal, threading, time
import numpy as np
from weft import cuda
from weft.cuda._code import link

seven = cuda.declare_device("seven", "int64()", link=cuda.PTXSource("nothing"))(lambda: 7)

def kernel(n):
    @cuda.jit
    def linked(x):
        x[0] = seven() + n
    return linked

def launch(n):
    x = np.zeros(1)
    kernel(n)[1, 1](x)
    assert x[0] == 7 + n

launch(1)
stop = False
def work(n):
    while not stop:
        n += 4
        launch(n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
children = []
for n in range(6):
    # However long another thread has it, the child does not inherit it.
    held, pause = threading.Event(), threading.Event()
    def hold():
        with link.LOCK:
            held.set()
            time.sleep(0.2)
    threading.Thread(target=hold).start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        launch(1000 + n)
        os._exit(0)
    children.append(pid)
stop = True
for thread in threads:
    thread.join()
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
print("done")
"""
    forking(tmp_path, program)


def test_a_fork_while_another_thread_opens_the_device(tmp_path) -> None:
    program = """
import os, signal, threading
import numpy as np
from weft import cuda, types

@cuda.jit
def add(x):
    x[0] += 1

# A module that another thread imports at a fork is Python's to wait for, in vain.
cuda.compile_ptx(add.py_func, types.void(types.float64[::1]), cc=(9, 0))

def launch():
    x = np.zeros(1)
    add[1, 1](x)
    assert x[0] == 1

thread = threading.Thread(target=launch)
thread.start()
children = []
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        launch()
        os._exit(0)
    children.append(pid)
thread.join()
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 10
print("done")
"""
    forking(tmp_path, program)
