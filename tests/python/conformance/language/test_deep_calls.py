"""Deep call chains that need a large stack, and threads with a stack that is too small."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FUNCTIONS, VALUES = 60, 60

PROGRAM = """
import threading
import numpy as np
from weft import cuda, errors
{functions}

def chain(kernel, *more):
    x, out = np.ones(64), np.zeros(32)
    kernel[1, 32](x, *more, out)
    assert (out == {expected}).all(), out

@cuda.jit(opt=False)
def waits(x, flag, out):
    t = cuda.threadIdx.x
    if t == 0:
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    out[t] = f{last}(x, t)

@cuda.jit(opt=False)
def plain(x, out):
    out[cuda.threadIdx.x] = f{last}(x, cuda.threadIdx.x)
"""


def source() -> str:
    """In unoptimized code, each value of a function has its own stack slot."""
    lines = "".join(f"    v{j} = x[(t + {j}) % 64] * {j}.5\n" for j in range(VALUES))
    total = "".join(f" + v{j}" for j in range(VALUES))
    functions = "@cuda.jit(device=True, opt=False)\ndef f0(x, t):\n    return x[t]\n"
    for at in range(1, FUNCTIONS):
        call = f"f{at - 1}(x, t + 1 if t < 62 else t)"
        functions += f"@cuda.jit(device=True, opt=False)\ndef f{at}(x, t):\n{lines}    return {call}{total}\n"
    expected = 1 + (FUNCTIONS - 1) * sum(j + 0.5 for j in range(VALUES))
    return PROGRAM.format(functions=functions, last=FUNCTIONS - 1, expected=expected)


def passes(path, text: str) -> None:
    path.write_text(source() + text, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(path)]
    done = subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr[-2000:]


def test_threads_that_wait_call_deep(tmp_path):
    passes(tmp_path / "deep.py", "\nchain(waits, np.zeros(1, np.int32))\nprint('passed')\n")


@pytest.mark.cpu
def test_a_launch_on_a_small_stack_is_an_error_where_the_calls_do_not_fit(tmp_path):
    text = """
chain(plain)
said = []

def launch():
    try:
        chain(plain)
    except errors.LaunchError as error:
        said.append(str(error))

threading.stack_size(128 << 10)
thread = threading.Thread(target=launch)
thread.start()
thread.join()
assert said == ["the calls of `plain` go deeper than the stack of a thread"], said
chain(plain)
print("passed")
"""
    passes(tmp_path / "small.py", text)


RECURSIVE = """
@cuda.jit(device=True)
def down(x, n):
    a = cuda.local.array(4000, np.float64)
    for i in range(4000):
        a[i] = x[(i + n) % 64] + n
    return a[n] if n == 0 else down(x, n - 1) + a[n] + f{last}(x, 1)

@cuda.jit
def recursive(x, n, out):
    out[cuda.threadIdx.x] = down(x, n)

def run(n):
    x, out = np.ones(64), np.zeros(1)
    recursive[1, 1](x, n, out)
    return out[0]
"""


@pytest.mark.cpu
def test_what_calls_itself_may_call_deep(tmp_path):
    text = """
assert run(3) > 0
try:
    run(3000)
except errors.LaunchError as error:
    assert "deeper than the stack" in str(error), error
    assert run(3) > 0
    print("passed")
"""
    passes(tmp_path / "recursive.py", RECURSIVE.replace("{last}", str(FUNCTIONS - 1)) + text)
