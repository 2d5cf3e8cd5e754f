"""The progress line of long compilations and copies, and the text that remains afterwards: on terminals only.

A function of the extension, for these tests only, sets the thresholds for time and size.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time

import pytest

PROGRAM = """
import signal
import sys
import numpy as np
from weft import _weft, cuda

# A shell's job in the background is deaf to it, and so is what that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
_weft.progress_limits(AFTER, 1 << 20)

def slow(name, n=150, last="x"):
    # Takes the compiler a good part of a second.
    lines = [f"def {name}(out):", "    x = out[0]"]
    lines += [f"    if x > {k}:\\n        x = x * {k} + out[{k} % out.size] // 3" for k in range(n)]
    scope = {}
    text = "\\n".join([*lines, f"    out[1] = {last}", ""])
    exec(text, scope)
    return cuda.jit(source=text)(scope[name])

out = np.zeros(4, np.int64)
"""


WIDTH = 100


class Screen:
    """A minimal terminal emulator: lines that are drawn and erased."""

    def __init__(self) -> None:
        self.lines, self.row, self.column = [""], 0, 0

    def feed(self, text: str) -> None:
        for part in re.findall(r"\x1b\[\??[0-9;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.down(1)
            elif part.startswith("\x1b"):
                self.control(part[-1], part[2:-1])
            else:
                for letter in part:
                    self.put(letter)

    def put(self, letter: str) -> None:
        if self.column == WIDTH:  # a full line continues in the next one, with the text that follows
            self.down(1)
            self.column = 0
        line = self.lines[self.row].ljust(WIDTH)
        self.lines[self.row] = line[: self.column] + letter + line[self.column + 1 :]
        self.column += 1

    def down(self, count: int) -> None:
        self.row += count
        self.lines += [""] * (self.row + 1 - len(self.lines))

    def control(self, what: str, number: str) -> None:
        if what == "A":
            self.row = max(0, self.row - int(number or 1))
        elif what == "B":
            self.down(int(number or 1))
        elif what == "K":
            self.lines[self.row] = "" if number == "2" else self.lines[self.row][: self.column]
        elif what == "m":
            pass
        else:
            raise AssertionError(f"this terminal knows no {what!r}")

    def shown(self) -> list[str]:
        return [line.rstrip() for line in self.lines if line.strip()]


def environment(env):
    ours = {"WEFT_DEVICE": "cpu", "WEFT_CACHE": "off", "TERM": "xterm"}
    return {**os.environ, **ours, **env}


def script_of(code, tmp_path, after):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.replace("AFTER", str(after)) + textwrap.dedent(code))
    return script


def on_terminal(code, tmp_path, after=0, interrupt=False, **env):
    """Runs a program on its own terminal: its output there, and its exit code."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    program = subprocess.Popen(
        [sys.executable, script_of(code, tmp_path, after)], env=environment(env), stdin=end, stdout=end, stderr=end
    )
    os.close(end)
    written, interrupted, limit = b"", False, time.monotonic() + 120
    try:
        while time.monotonic() < limit:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                written += os.read(terminal, 65536)
            except OSError:  # the program has ended
                break
            if interrupt and not interrupted and b"compiling" in written:
                interrupted = True
                program.send_signal(signal.SIGINT)
    finally:
        os.close(terminal)
        if time.monotonic() >= limit:
            program.kill()
    return written.decode(), program.wait()


def left(written):
    """The content of a terminal at the end."""
    screen = Screen()
    screen.feed(written)
    return screen.shown()


COMPILES = """
slow("a_kernel")[1, 1](out)
print("done")
"""


def test_a_long_compilation_is_shown_and_nothing_of_it_is_left(tmp_path) -> None:
    written, status = on_terminal(COMPILES, tmp_path)
    assert status == 0, written
    assert re.search(r"weft: compiling a_kernel\(array\(int64, 1d, C\)\): [A-Za-z' -]+, \d+ s", written)
    assert left(written) == ["done"]


SANITIZES = """
@cuda.jit(sanitize="all")
def counts(x):
    i = cuda.grid(1)
    for _ in range(20):
        x[i] += 1

x = np.zeros(1 << 16, np.int32)
counts[1 << 10, 64](x)
print(x.sum() >> 16)
"""


def test_a_long_launch_under_the_sanitizer_is_shown_and_nothing_of_it_is_left(tmp_path) -> None:
    written, status = on_terminal(SANITIZES, tmp_path)
    assert status == 0, written
    assert re.search(r"weft: sanitizing counts: \d+ of 1024 blocks, \d+ s .*\d+ %", written)
    assert left(written) == ["20"]


PROFILES = """
from weft.profile import profile

@cuda.jit
def mixed(x):
    acc = x[0]
    # So different that blocks run until the time is over.
    for k in range(cuda.blockIdx.x * 7919 % 1000):
        acc = (acc ^ k) * 3
    x[cuda.grid(1)] = acc

print(profile(mixed[1 << 20, 32], (np.zeros(1 << 25, np.int32),), seconds=0.6).kernel)
"""


def test_a_long_profile_is_shown_and_nothing_of_it_is_left(tmp_path) -> None:
    written, status = on_terminal(PROFILES, tmp_path)
    assert status == 0, written
    assert re.search(r"weft: profiling mixed: running its blocks, \d+ s", written)
    assert left(written) == ["mixed"]


def test_one_that_is_not_long_is_not_shown(tmp_path) -> None:
    written, status = on_terminal(COMPILES, tmp_path, after=600_000)
    assert (written, status) == ("done\r\n", 0)


@pytest.mark.parametrize("env", [{"WEFT_PROGRESS": "0"}, {"TERM": "dumb"}])
def test_nothing_is_shown_where_it_is_not_wanted_or_cannot_be(tmp_path, env) -> None:
    assert on_terminal(COMPILES, tmp_path, **env) == ("done\r\n", 0)


def test_nothing_is_shown_where_the_standard_error_is_not_pythons(tmp_path) -> None:
    """As in a notebook whose server was started on a terminal."""
    assert on_terminal("import io\nsys.stderr = io.StringIO()\n" + COMPILES, tmp_path) == ("done\r\n", 0)


def test_nothing_is_left_where_a_compilation_fails(tmp_path) -> None:
    code = """
    try:
        slow("a_kernel", 6000, last="nobody_knows")[1, 1](out)
    except Exception as error:
        print(type(error).__name__)
    """
    written, status = on_terminal(code, tmp_path)
    assert status == 0, written
    assert "weft: compiling a_kernel" in written
    assert left(written) == ["CompileError"]


def test_nothing_is_left_after_an_interruption(tmp_path) -> None:
    code = """
    try:
        slow("a_kernel", 1500)[1, 1](out)
    except KeyboardInterrupt:
        print("interrupted")
    """
    written, status = on_terminal(code, tmp_path, interrupt=True)
    assert status == 0, written
    assert left(written) == ["interrupted"]


def test_several_at_once_have_a_line_each(tmp_path) -> None:
    code = """
    import threading

    kernels = [slow(f"kernel_{k}", 400) for k in range(3)]
    threads = [threading.Thread(target=lambda k=k: k[1, 1](out.copy())) for k in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done")
    """
    written, status = on_terminal(code, tmp_path)
    assert status == 0, written
    screen, together = Screen(), 0
    for piece in written.split("\r"):
        screen.feed("\r" + piece)
        lines = screen.shown()
        assert all(re.match(r"\S weft: compiling kernel_\d|done", line) for line in lines), lines
        together = max(together, len(lines))
    assert together == 3
    assert screen.shown() == ["done"]


THERE = """
big = np.arange(1 << 20)
device = cuda.to_device(big)
_weft.progress_limits(0, 1 << 40)
assert (device.copy_to_host() == big).all()
print("done")
"""
BACK = """
big = np.arange(1 << 20)
_weft.progress_limits(0, 1 << 40)
device = cuda.to_device(big)
_weft.progress_limits(0, 1 << 20)
assert (device.copy_to_host() == big).all()
print("done")
"""
ROWS = """
big = np.arange(1 << 21).reshape(1 << 10, 1 << 11)[:, :1500]
device = cuda.to_device(big)
_weft.progress_limits(0, 1 << 40)
assert (device.copy_to_host() == big).all()
print("done")
"""
WAYS = [
    (THERE, "copying from host to device"),
    (ROWS, "copying from host to device"),
    (BACK, "copying from device to host"),
]


@pytest.mark.parametrize(("code", "told"), WAYS)
def test_large_copies_are_shown_where_they_are_wanted(tmp_path, code, told) -> None:
    written, status = on_terminal(code, tmp_path, WEFT_PROGRESS="1")
    assert status == 0, written
    assert f"weft: {told}" in written
    assert left(written) == ["done"]
    assert on_terminal(code, tmp_path) == ("done\r\n", 0)


def test_a_copy_that_is_shown_copies_all_of_an_odd_size(tmp_path) -> None:
    code = """
    for size in ((1 << 20) + 1, (1 << 21) + 4095):
        big = np.random.default_rng(size).integers(0, 255, size, np.uint8)
        assert (cuda.to_device(big).copy_to_host() == big).all()
    """
    written, status = on_terminal(code, tmp_path, WEFT_PROGRESS="1")
    assert status == 0, written


@pytest.mark.parametrize(("code", "told"), WAYS)
def test_copies_on_a_gpu_are_shown_too(tmp_path, driver, code, told) -> None:
    env = {"LD_LIBRARY_PATH": str(driver), "WEFT_DEVICE": "cuda", "WEFT_PROGRESS": "1"}
    written, status = on_terminal(code, tmp_path, **env)
    assert status == 0, written
    assert f"weft: {told}" in written
    assert left(written) == ["done"]


def piped(code, tmp_path, **env):
    done = subprocess.run(
        [sys.executable, script_of(code, tmp_path, 0)],
        env=environment(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_nothing_is_written_to_a_pipe(tmp_path) -> None:
    assert piped(COMPILES + THERE, tmp_path) == ("done\ndone\n", "")


def test_two_lines_are_written_to_a_pipe_where_they_are_wanted(tmp_path) -> None:
    stdout, stderr = piped(COMPILES, tmp_path, WEFT_PROGRESS="1")
    first, last = stderr.splitlines()
    assert stdout == "done\n"
    assert re.fullmatch(r"weft: compiling a_kernel\(array\(int64, 1d, C\)\): [A-Za-z' -]+, 0 s", first)
    assert re.fullmatch(r"weft: compiling a_kernel\(array\(int64, 1d, C\)\): ended after \d+\.\d s", last)
