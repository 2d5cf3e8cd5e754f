"""What kernels print on the CPU goes to `sys.stdout`, between what Python prints before and behind the launch."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from weft import cuda

pytestmark = pytest.mark.cpu


@cuda.jit
def say(text_of):
    print("kernel", text_of)


@cuda.jit
def say_much(n):
    for i in range(n):
        print("a line of some length, of which there are many:", i)


@cuda.jit
def say_and_spin(flag):
    if cuda.grid(1) == 0:
        print("from within")
    while cuda.atomic.add(flag, 0, 0) == 0:
        pass


def test_capsys(capsys):
    print("before")
    say[1, 1](1)
    print("between")
    say[1, 2](2)
    assert capsys.readouterr().out == "before\nkernel 1\nbetween\nkernel 2\nkernel 2\n"


def test_redirect_stdout(capfd):
    first, second = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(first):
        print("a")
        say[1, 1](1)
        with contextlib.redirect_stdout(second):
            say[1, 1](2)
        print("b")
    say[1, 1](3)
    assert first.getvalue() == "a\nkernel 1\nb\n"
    assert second.getvalue() == "kernel 2\n"
    assert capfd.readouterr().out == "kernel 3\n"


def test_much_is_not_lost():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say_much[8, 4](1000)
    lines = out.getvalue().splitlines()
    each = [f"a line of some length, of which there are many: {i}" for i in range(1000)]
    assert sorted(lines) == sorted(each * 32)


def test_letters_beyond_ascii():
    @cuda.jit
    def letters():
        print("äöü — €")

    with contextlib.redirect_stdout(io.StringIO()) as out:
        letters[1, 1]()
    assert out.getvalue() == "äöü — €\n"


def test_what_a_write_raises_is_raised_by_the_launch():
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("no room for " + text.strip())

    with contextlib.redirect_stdout(Broken()), pytest.raises(OSError, match="no room for kernel 1"):
        say[1, 1](1)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say[1, 1](2)
    assert out.getvalue() == "kernel 2\n"


def test_without_a_stdout(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)
    say[1, 1](1)
    monkeypatch.undo()
    assert "kernel 1\n" in capfd.readouterr().out


def test_long_launches_show_what_they_print():
    """A launch that goes on is looked up from now and then."""
    seen = []

    class Stop(io.StringIO):
        def write(self, text):
            seen.append(text)
            flag.copy_to_device(np.ones(1, np.int32))
            return len(text)

    def too_long(*_):
        raise TimeoutError

    flag = cuda.to_device(np.zeros(1, np.int32))
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(30)
    try:
        with contextlib.redirect_stdout(Stop()):
            say_and_spin[1, 2](flag)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert seen == ["from within\n"]


@pytest.mark.parametrize("sink", ["pipe", "file"])
def test_the_order_of_what_a_process_prints(tmp_path, sink):
    program = tmp_path / "program.py"
    program.write_text(
        "from weft import cuda\n"
        "@cuda.jit\ndef k(i):\n    print('kernel', i)\n"
        "for i in range(3):\n    print('python', i)\n    k[1, 1](i)\nprint('end')\n"
    )
    path = tmp_path / "out"
    with path.open("w") as out:
        done = subprocess.run(
            [sys.executable, program],
            stdout=subprocess.PIPE if sink == "pipe" else out,
            env=os.environ | {"WEFT_DEVICE": "cpu"},
            text=True,
            check=True,
        )
    text = done.stdout if sink == "pipe" else path.read_text()
    assert text == "".join(f"python {i}\nkernel {i}\n" for i in range(3)) + "end\n"
