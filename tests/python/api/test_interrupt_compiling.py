"""Signals that come while something is compiled: their handlers run, and what they raise ends the compilation."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from harness import module
from weft import cuda

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")

# Everything here is heard at once, or after minutes.
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
    """A kernel with so many loops, one in another or one after another, over n items of several types."""
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
    # Four million bodies.
    kernel = unlike(2000, loops=2)
    for seconds in (0.2, 0.7):
        interrupted(alarm, seconds, lambda: kernel[1, 1](np.zeros(1)))
    interrupted(alarm, 0.2, lambda: cuda.jit(device=True)(kernel.py_func).result_type("(float64[::1],)"))
    out = np.zeros(1)
    unlike(20)[1, 1](out)
    assert out[0] == 195


def test_llvm_is_interrupted(alarm):
    kernel = unlike(2000, after=8)
    for seconds in (2, 5):
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
        # What is being compiled, and something else.
        texts.append(kernel.inspect_asm("void(float64[::1])", target=target))
        texts.append(other.inspect_asm("void(float64[::1])", target=target))

    alarm(handler, 0.05)
    text = kernel.inspect_asm("void(float64[::1])", target=target)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert texts in ([], [text, other.inspect_asm("void(float64[::1])", target=target)])


def test_who_waits_for_what_is_given_up_compiles_it(alarm):
    kernel, results = unlike(1000), []

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
    kernel, children = unlike(300), []

    def handler() -> None:
        child = os.fork()
        if child:
            children.append(child)
        else:
            children.append(0)

    alarm(handler, 0.05)
    out = np.zeros(1)
    kernel[1, 1](out)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if children == [0]:
        os._exit(0 if out[0] == 44850 + 75 else 1)
    assert out[0] == 44850 + 75
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
