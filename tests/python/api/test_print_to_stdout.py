"""The output of kernels goes to `sys.stdout`, between Python's output before the launch and after the wait."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from weft import cuda


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


def say_and_wait(text_of):
    say[1, 1](text_of)
    cuda.synchronize()


def test_capsys(capsys):
    print("before")
    say[1, 1](1)
    cuda.synchronize()
    print("between")
    say[1, 2](2)
    cuda.synchronize()
    assert capsys.readouterr().out == "before\nkernel 1\nbetween\nkernel 2\nkernel 2\n"


def test_redirect_stdout(capfd):
    first, second = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(first):
        print("a")
        say[1, 1](1)
        cuda.synchronize()
        with contextlib.redirect_stdout(second):
            say[1, 1](2)
            cuda.synchronize()
        print("b")
    say[1, 1](3)
    cuda.synchronize()
    assert first.getvalue() == "a\nkernel 1\nb\n"
    assert second.getvalue() == "kernel 2\n"
    assert capfd.readouterr().out == "kernel 3\n"


def test_much_is_not_lost():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say_much[8, 4](1000)
        cuda.synchronize()
    lines = out.getvalue().splitlines()
    each = [f"a line of some length, of which there are many: {i}" for i in range(1000)]
    assert sorted(lines) == sorted(each * 32)


def test_letters_beyond_ascii():
    @cuda.jit
    def letters():
        print("äöü — €")

    with contextlib.redirect_stdout(io.StringIO()) as out:
        letters[1, 1]()
        cuda.synchronize()
    assert out.getvalue() == "äöü — €\n"


def test_what_a_write_raises_is_raised_by_the_launch_or_the_wait():
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("no room for " + text.strip())

    with contextlib.redirect_stdout(Broken()), pytest.raises(OSError, match="no room for kernel 1"):
        say_and_wait(1)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say_and_wait(2)
    assert out.getvalue() == "kernel 2\n"


def test_without_a_stdout(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)
    say[1, 1](1)
    cuda.synchronize()
    monkeypatch.undo()
    assert "kernel 1\n" in capfd.readouterr().out


@pytest.mark.cpu
def test_long_launches_show_what_they_print():
    """The output of a running launch is polled periodically."""
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
        "for i in range(3):\n    print('python', i)\n    k[1, 1](i)\n    cuda.synchronize()\nprint('end')\n"
    )
    path = tmp_path / "out"
    with path.open("w") as out:
        done = subprocess.run(
            [sys.executable, program],
            stdout=subprocess.PIPE if sink == "pipe" else out,
            text=True,
            check=True,
        )
    text = done.stdout if sink == "pipe" else path.read_text()
    assert text == "".join(f"python {i}\nkernel {i}\n" for i in range(3)) + "end\n"


@pytest.mark.parametrize(
    "wait",
    [
        lambda: cuda.default_stream().synchronize(),
        lambda: cuda.to_device(np.zeros(3)).copy_to_host(),
        lambda: say[1, 1](2),
        lambda: cuda.event().query(),
        lambda: poll(cuda.default_stream().query),
    ],
    ids=["stream", "copy", "launch", "event", "query"],
)
def test_each_wait_writes(wait):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say[1, 1](1)
        time.sleep(0.2)
        wait()
        text = out.getvalue()
        cuda.synchronize()
    assert text.startswith("kernel 1\n")


def poll(is_done):
    until = time.monotonic() + 30
    while not is_done():
        assert time.monotonic() < until


def test_the_order_of_kernels_is_kept():
    """For one module and several, with more output than a GPU's ring buffer holds."""

    @cuda.jit
    def other(i):
        print("other", i)

    with contextlib.redirect_stdout(io.StringIO()) as out:
        for i in range(20_000):
            say[1, 1](i)
            other[1, 1](i)
        cuda.synchronize()
    assert out.getvalue() == "".join(f"kernel {i}\nother {i}\n" for i in range(20_000))


def test_texts_of_many_lengths():
    @cuda.jit
    def texts(names, n):
        i = cuda.grid(1)
        if i < n:
            print(i, names[i % 5], f"{i:5d}|", "end")

    names = np.array(["", "a", "eight le", "nine lett", "of seventeen lett"])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        texts[40, 128](names, 5000)
        cuda.synchronize()
    lines = sorted(out.getvalue().splitlines(), key=lambda line: int(line.split()[0]))
    assert lines == [f"{i} {names[i % 5]} {i:5d}| end" for i in range(5000)]


@pytest.mark.cuda
def test_what_finds_no_room_on_a_gpu_is_counted():
    # The driver determines the buffer size: increase the output until the buffer overflows.
    for n in (100, 400, 1600):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            say_much[64, 128](n)
            # The host reads while it waits, which starts long after the buffer is full.
            time.sleep(n / 50)
            cuda.synchronize()
            say[1, 1](1)
            cuda.synchronize()
        lines = out.getvalue().splitlines()
        assert lines[-1] == "kernel 1"
        printed = sum(line.startswith("a line of some length") for line in lines)
        told = [
            int(found[1])
            for line in lines
            if (found := re.match(r"\[weft: about (\d+) calls of print were lost", line))
        ]
        lost = 64 * 128 * n - printed
        assert printed > 20_000
        assert 0.9 * lost <= sum(told) <= lost
        if told:
            return
    pytest.fail("every call found room")


@pytest.mark.cuda
def test_what_was_printed_before_a_fault_on_a_gpu_is_written(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, io\nfrom weft import cuda\nimport numpy as np\n"
        "@cuda.jit\ndef k(x, i):\n    print('before', i)\n    x[i] = 1.0\n"
        "sys.stdout = io.StringIO()\n"
        "x = cuda.to_device(np.zeros(3))\n"
        "k[1, 1](x, 1 << 31)\n"
        "try:\n    cuda.synchronize()\nexcept cuda.CudaAPIError as error:\n    told = str(error)\n"
        "text, sys.stdout = sys.stdout.getvalue(), sys.__stdout__\nprint(repr(text), told)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"'before {1 << 31}\\n' ")
    assert "invalid memory access: a kernel read or wrote" in done.stdout


@pytest.mark.cuda
def test_graphs_print():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with cuda.graph() as graph:
            say[1, 1](1)
            say[1, 1](2)
        for _ in range(3):
            graph.launch()
        cuda.synchronize()
    assert out.getvalue() == "kernel 1\nkernel 2\n" * 3
