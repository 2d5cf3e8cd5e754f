"""Signals during compilation: their handlers run, and an exception of a handler ends the compilation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from harness import module
from weft import cuda

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")

# A signal is handled either at once or after minutes.
SOON = 20


class Enough(Exception):
    pass


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


def enough():
    raise Enough


def unlike(n: int, loops: int = 1, after: int = 1):
    """A kernel with n loops, nested or in sequence, over n items of several types."""
    text = f"from weft import cuda\nitems = ({', '.join(f'{i}' if i % 2 else f'{i}.5' for i in range(n))})\n"
    text += "@cuda.jit\ndef k(o):\n"
    for start in range(after):
        for at in range(loops):
            text += "    " * (at + 1) + f"for v{at} in items:\n"
        text += "    " * (loops + 1) + f"o[0] += v{loops - 1} + {start}\n"
    return module(text).k


def interrupted(alarm, seconds: float, action) -> None:
    alarm(enough, seconds)
    begin = time.monotonic()
    with pytest.raises(Enough):
        action()
    assert time.monotonic() - begin < seconds + SOON


def test_the_front_end_is_interrupted(alarm):
    # A million bodies.
    kernel = unlike(1000, loops=2)
    for seconds in (0.2, 0.7):
        interrupted(alarm, seconds, lambda: kernel[1, 1](np.zeros(1)))
    interrupted(alarm, 0.2, lambda: cuda.jit(device=True)(kernel.py_func).result_type("(float64[::1],)"))
    out = np.zeros(1)
    unlike(20)[1, 1](out)
    assert out[0] == 195


def test_llvm_is_interrupted(alarm):
    kernel = unlike(2000, after=8)
    for seconds in (1, 3):
        interrupted(alarm, seconds, lambda: kernel[1, 1](np.zeros(1)))


def straight(n: int) -> str:
    lines = "".join(f"    v{j % 40} = v{(j * 7) % 40} * o[{j % 64}] + v{(j * 3 + 1) % 40}\n" for j in range(n))
    starts = "".join(f"    v{j} = o[{j}]\n" for j in range(40))
    ends = "".join(f"    o[{j}] = v{j}\n" for j in range(40))
    return f"from weft import cuda\n@cuda.jit\ndef k(o):\n{starts}{lines}{ends}"


@pytest.mark.parametrize("target", ["sm_80", "host"])
def test_a_compilation_goes_on_where_nothing_is_raised(alarm, target):
    kernel, texts, other = module(straight(400)).k, [], module(straight(10)).k

    def handler() -> None:
        # The code that is being compiled, and other code.
        texts.append(kernel.inspect_asm("void(float64[::1])", target=target))
        texts.append(other.inspect_asm("void(float64[::1])", target=target))

    alarm(handler, 0.05)
    text = kernel.inspect_asm("void(float64[::1])", target=target)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert texts in ([], [text, other.inspect_asm("void(float64[::1])", target=target)])


def test_who_waits_for_what_is_given_up_compiles_it(alarm):
    kernel, results = unlike(2000, after=4), []

    def assembly() -> str:
        return kernel.inspect_asm("void(float64[::1])", target="sm_80")

    def other() -> None:
        time.sleep(0.3)
        results.append(assembly())

    thread = threading.Thread(target=other)
    thread.start()
    interrupted(alarm, 0.6, assembly)
    thread.join()
    assert ".visible .entry k" in results[0]


@pytest.mark.cpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_of_a_handler_compiles_too(alarm):
    kernel, children, parent, out = unlike(1000), [], os.getpid(), np.zeros(1)
    alarm(lambda: children.append(os.fork()), 0.05)
    try:
        kernel[1, 1](out)
    finally:
        # The child must exit here in any case, and not continue with the tests.
        if os.getpid() != parent:
            os._exit(0 if out[0] == 499500 + 250 else 1)
    assert children
    assert out[0] == 499500 + 250
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


STORM = '''
import random, signal, sys, time
import numpy as np
from weft import cuda

TEXT = """
from weft import cuda
import numpy as np

@cuda.jit
def helper(x, n=3):
    return x * n + {i}

@cuda.jit
def kernel(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = helper(x[i]) + sum(j for j in range({i} % 5))
"""
folder, seconds = sys.argv[1], float(sys.argv[2])
made = 0

def work():
    global made
    made += 1
    i = made
    path = f"{folder}/kernel_{i}.py"
    text = TEXT.format(i=i)
    with open(path, "w") as file:
        file.write(text)
    names = {"__name__": f"kernel_{i}"}
    exec(compile(text, path, "exec"), names)
    x = np.arange(5.0)
    names["kernel"][1, 8](x)
    wanted = np.arange(5.0) * 3 + i + sum(range(i % 5))
    assert x.tolist() == wanted.tolist(), (x, wanted)

class Enough(BaseException):
    pass

chances, inside, heard, ended, raises = random.Random(7), 0, 0, 0, False

def handler(*_):
    global inside, heard, raises
    heard += 1
    if inside < 2 and chances.random() < 0.5:
        inside += 1
        try:
            work()
        finally:
            inside -= 1
    elif raises and chances.random() < 0.5:
        raises = False
        raise Enough

work()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        raises = chances.random() < 0.5
        work()
        work()
        raises = False
    except Enough:
        ended += 1
signal.setitimer(signal.ITIMER_REAL, 0)
work()
print(made, heard, ended, file=sys.stderr)
assert heard > ended > 0
print("done")
'''


@pytest.mark.cpu
def test_handlers_that_compile_and_launch_may_come_at_any_time(tmp_path):
    script = tmp_path / "storm.py"
    script.write_text(STORM)
    env = os.environ | {"WEFT_DEVICE": "cpu"}
    command = [sys.executable, "-W", "ignore", script, tmp_path, "4"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
