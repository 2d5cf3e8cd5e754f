"""Debuggers in kernels: pdb at a terminal, which thread stops, and `breakpoint()` without a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.cpu

PROGRAM = """
import numpy as np
from weft import cuda


@cuda.jit(device=True)
def square(v):
    w = v * v
    return w


@cuda.jit
def alone(x):
    i = cuda.grid(1)
    breakpoint()
    y = square(x[i])
    x[i] = y + 1


@cuda.jit
def together(x, out):
    part = cuda.shared.array(4, np.int64)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    breakpoint()
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = part.sum()


x, out = np.arange(8), np.zeros(2, np.int64)
"""


class Terminal:
    """A program at a pseudo-terminal: `say` types a line and returns the output up to the next prompt."""

    def __init__(self, path, **env: str) -> None:
        self.ours, theirs = pty.openpty()
        env = os.environ | {"WEFT_DEVICE": "python", "TERM": "dumb"} | env
        env.pop("PYTHONBREAKPOINT", None)
        self.process = subprocess.Popen([sys.executable, path], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)

    def read(self, until: str = "(Pdb) ") -> str:
        text, limit = "", time.monotonic() + 60
        while until not in text and time.monotonic() < limit:
            if not select.select([self.ours], [], [], 1)[0]:
                continue
            try:
                got = os.read(self.ours, 65536)
            except OSError:  # the other end is closed
                break
            text += got.decode()
        return text.replace("\r\n", "\n")

    def say(self, line: str) -> str:
        os.write(self.ours, line.encode() + b"\n")
        return self.read().partition("\n")[2].replace("(Pdb) ", "").rstrip()

    def stopped(self) -> str:
        """The output up to the line after the breakpoint, at which pdb stops itself from Python 3.13 on."""
        text = self.read()
        return text + self.say("n") if "-> breakpoint()" in text else text

    def end(self) -> int:
        rest = self.read("never")
        code = self.process.wait(60)
        os.close(self.ours)
        assert code == 0, rest
        return code


@pytest.fixture
def terminal(tmp_path):
    def opened(launches: str, **env: str) -> Terminal:
        path = tmp_path / "program.py"
        path.write_text(PROGRAM + textwrap.dedent(launches))
        made.append(Terminal(path, **env))
        return made[-1]

    made: list[Terminal] = []
    yield opened
    for each in made:
        each.process.kill()


def test_one_thread_is_stepped_through(terminal):
    pdb = terminal(
        "alone[2, 4](x)\nassert (x == np.arange(8) ** 2 + 1).all()\n", WEFT_DEBUG_THREAD="2", WEFT_DEBUG_BLOCK="1"
    )
    first = pdb.stopped()
    assert "thread (2, 0, 0) of block (1, 0, 0) of the kernel `alone`" in first
    assert "-> y = square(x[i])" in first
    assert pdb.say("p i") == "6"
    assert pdb.say("p cuda.threadIdx.x, cuda.blockIdx, cuda.grid(1)") == "(2, (1, 0, 0), 6)"
    assert pdb.say("p x[i], x[:3]") == "(6, array([1, 2, 5]))"  # earlier threads have run
    assert "--Call--" in pdb.say("s")
    assert "-> w = v * v" in pdb.say("s")
    assert "-> return w" in pdb.say("n")
    assert pdb.say("p w") == "36"
    assert "square()->36" in pdb.say("n")
    assert "-> x[i] = y + 1" in pdb.say("n")
    assert "alone()->None" in pdb.say("n")
    # After the end of the kernel, the debugger continues in the program, not in the next thread.
    assert "-> assert (x ==" in pdb.say("n")
    os.write(pdb.ours, b"c\n")
    pdb.end()


def test_one_thread_of_those_that_meet(terminal):
    pdb = terminal(
        "together[2, 4](x, out)\nassert out.tolist() == [6, 22]\n", WEFT_DEBUG_THREAD="1", WEFT_DEBUG_BLOCK="1"
    )
    assert "thread (1, 0, 0) of block (1, 0, 0) of the kernel `together`" in pdb.stopped()
    assert pdb.say("p t, part[:2]") == "(1, array([4, 5]))"
    assert "-> if t == 0:" in pdb.say("n")
    assert pdb.say("p part") == "array([4, 5, 6, 7])"
    assert "together()" in pdb.say("w")
    os.write(pdb.ours, b"c\n")
    pdb.end()


def test_all_threads_and_a_breakpoint_of_pdbs(terminal):
    launches = """
    import pdb
    from weft import config


    @cuda.jit
    def traced(x):
        i = cuda.grid(1)
        pdb.set_trace()
        x[i] += 1


    config.DEBUG_THREAD = None
    traced[2, 2](x)
    assert x.tolist() == [1, 2, 3, 4, 4, 5, 6, 7]
    """
    pdb = terminal(launches)
    text = pdb.read()
    for thread in range(2):
        assert f"thread ({thread}, 0, 0) of block (0, 0, 0) of the kernel `traced`" in text
        text = pdb.say("c") if thread == 0 else text
    os.write(pdb.ours, b"c\n")
    pdb.end()


def test_to_quit_ends_the_launch(terminal):
    launches = """
    import bdb

    for kernel, args in ((alone, (x,)), (together, (x, out))):
        try:
            kernel[2, 4](*args)
        except bdb.BdbQuit:
            print("quit", kernel.__name__)
        else:
            raise AssertionError
    """
    pdb = terminal(launches)
    pdb.read()
    assert "quit alone" in pdb.say("q")
    os.write(pdb.ours, b"q\n")
    pdb.end()


def test_another_debugger_is_asked_for_as_ever(tmp_path):
    path = tmp_path / "program.py"
    launches = """
    import sys

    stops = []
    sys.breakpointhook = lambda: stops.append(sys._getframe(1).f_locals["i"])
    alone[2, 4](x)
    assert stops == [0]
    """
    path.write_text(PROGRAM + textwrap.dedent(launches))
    subprocess.run([sys.executable, path], env=os.environ | {"WEFT_DEVICE": "python"}, check=True, timeout=60)
