"""`explain` on the CPU: remarks about the regions, loops and accesses of a kernel, at the lines of the program."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from weft import cuda

pytestmark = pytest.mark.cpu


def columns(a: Any, y: Any) -> None:
    i = cuda.grid(1)
    total = y[i]
    for k in range(a.shape[0]):
        total += a[k, i]
    y[i] = total


def rows(start: Any, y: Any) -> None:
    i = cuda.grid(1)
    total = y[i]
    for k in range(start[i], start[i + 1]):
        total += y[k]
    y[i] = total


def spins(lock: Any, y: Any) -> None:
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    y[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def remarks(kernel: Any, *args: Any) -> str:
    """What `explain` says after a launch of 64 threads."""
    kernel[1, 64](*args)
    return str(kernel.explain())


def line(function: Any, code: str) -> int:
    """The line of this file that contains some code of a function."""
    lines, first = inspect.getsourcelines(function)
    return next(first + at for at, text in enumerate(lines) if code in text)


def test_an_interchanged_loop() -> None:
    text = remarks(cuda.jit(columns), np.ones((5, 64), np.float32), np.zeros(64, np.float32))
    assert f"line {line(columns, 'for k')}: loop: interchanged with the loop over threads, which is innermost" in text
    assert f"line {line(columns, 'a[k, i]')}: load a[k, i]: contiguous" in text
    assert f"line {line(columns, 'y[i] = total')}: store y[i]: contiguous" in text


def test_a_loop_that_each_thread_runs() -> None:
    text = remarks(cuda.jit(rows), np.arange(65, dtype=np.int32), np.zeros(65, np.float32))
    at = line(rows, "for k")
    reason = rf"line {at}: loop: each thread runs it on its own; .*: line {at}, `for k in range.*the trip count differs"
    assert re.search(reason, text), text
    assert f"line {line(rows, 'y[k]')}: load y[k]: gather" in text


def test_threads_with_stacks() -> None:
    text = remarks(cuda.jit(spins), np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert "each thread has its own stack, and there are no loops over threads: a thread may wait in a loop" in text


def test_signature_and_variants() -> None:
    """Each type of arguments has its own remarks."""
    kernel = cuda.jit(columns)
    for dtype in (np.float32, np.float64):
        remarks(kernel, np.ones((5, 64), dtype), np.zeros(64, dtype))
    text = kernel.explain((cuda.float64[:, ::1], cuda.float64[::1])) if hasattr(cuda, "float64") else kernel.explain()
    assert text.count(": load a[k, i]: contiguous") >= 1
    assert kernel.explain().count(": load a[k, i]: contiguous") == 2
