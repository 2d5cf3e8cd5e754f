"""Spin loops under the sanitizer: many waiting threads, in different orders, and loops that give up."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import weft.errors
from host_memory import has_driver
from weft import cuda

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cpu


@cuda.jit(sanitize="all")
def all_wait_at_a_barrier(bar, data, out):
    """Each thread of the grid waits by itself, and reads an element that another one wrote."""
    i = cuda.grid(1)
    threads = cuda.gridsize(1)
    for turn in range(2):
        data[i] = i + turn
        cuda.threadfence()
        cuda.atomic.add(bar, 2 * turn, 1)
        while cuda.atomic.add(bar, 2 * turn, 0) < threads:
            pass
        cuda.threadfence()
        out[i] += data[(i + 70) % threads]
        cuda.threadfence()
        cuda.atomic.add(bar, 2 * turn + 1, 1)
        while cuda.atomic.add(bar, 2 * turn + 1, 0) < threads:
            pass
        cuda.threadfence()


@cuda.jit(sanitize="all")
def chain(flags, data, step, fences):
    """Each block waits for the previous or the next one, and adds to its result."""
    b = cuda.blockIdx.x
    other = b + step
    if 0 <= other < cuda.gridDim.x:
        while cuda.atomic.add(flags, other, 0) == 0:
            pass
        if fences:
            cuda.threadfence()
        data[b] += data[other]
    if fences:
        cuda.threadfence()
    cuda.atomic.add(flags, b, 1)


@cuda.jit(sanitize="all")
def gives_up(flag, out):
    """The flag is never set: each thread polls it many times, and continues."""
    i = cuda.threadIdx.x
    n = 0
    while cuda.atomic.add(flag, 0, 0) == 0 and n < 50_000:
        n += 1
    out[i] = n


@cuda.jit(sanitize="all")
def waits_while_others_work(flag, data, out):
    """One thread runs a long loop, and all others wait for it."""
    i = cuda.threadIdx.x
    if i == 0:
        k = 0
        while data[k] >= 0:
            data[k] += k
            k += 1
        out[0] = k
        cuda.threadfence()
        cuda.atomic.add(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence()
        out[i] = out[0]


def kinds(kernel, *args) -> list[str]:
    """The findings of a launch."""
    try:
        kernel(*args)
        cuda.synchronize()
    except weft.errors.SanitizerError as error:
        return sorted(finding.kind for finding in error.findings)
    return []


@pytest.mark.parametrize(("blocks", "threads"), [(1, 1), (3, 100), (150, 64), (1000, 1)])
def test_each_thread_of_a_grid_waits(blocks: int, threads: int) -> None:
    n = blocks * threads
    out = np.zeros(n, np.int64)
    assert kinds(all_wait_at_a_barrier[blocks, threads], np.zeros(4, np.int32), np.zeros(n, np.int64), out) == []
    np.testing.assert_array_equal(out, 2 * np.roll(np.arange(n), -70) + 1)


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("blocks", [3, 50, 2000])
def test_blocks_wait_in_a_chain(blocks: int, step: int) -> None:
    data = np.ones(blocks, np.int64)
    assert kinds(chain[blocks, 1], np.zeros(blocks, np.int32), data, step, True) == []
    np.testing.assert_array_equal(data, np.arange(1, blocks + 1)[::-step])
    if blocks <= 50:
        assert "race between blocks" in kinds(chain[blocks, 1], np.zeros(blocks, np.int32), data, step, False)


def test_threads_that_give_up_do_not_wait_for_ever() -> None:
    out = np.zeros(40, np.int64)
    assert kinds(gives_up[1, 40], np.zeros(1, np.int32), out) == []
    assert (out == 50_000).all()


def test_others_wait_for_one_that_works() -> None:
    data = np.ones(3000, np.int64)
    data[-1] = -10_000
    out = np.zeros(256, np.int64)
    assert kinds(waits_while_others_work[1, 256], np.zeros(1, np.int32), data, out) == []
    assert (out == 2999).all()
    np.testing.assert_array_equal(data[:-1], 1 + np.arange(2999))


WILD = """
import numpy as np
import weft
from weft import cuda

@cuda.jit(sanitize="all")
def in_turn(x, flag):
    i = cuda.threadIdx.x
    while cuda.atomic.add(flag, 0, 0) != i:
        pass
    if i == 5:
        cuda.atomic.add(x, 3, 1)
    cuda.atomic.add(flag, 0, 1)

nowhere = {"shape": (8,), "typestr": "<i4", "data": (1 << 45, False), "version": 3}
view = cuda.as_cuda_array(type("View", (), {"__cuda_array_interface__": nowhere})())
for _ in range(2):
    try:
        in_turn[1, 32](view, np.zeros(1, np.int32))
        cuda.synchronize()
    except weft.LaunchError as error:
        print("ends:", "in_turn" in str(error))
"""


@pytest.mark.skipif(has_driver(), reason="the arrays are in CPU memory, beside a GPU")
def test_memory_that_is_not_there_ends_the_launch_and_not_the_process(tmp_path: Path) -> None:
    program = tmp_path / "wild.py"
    program.write_text(WILD)
    env = os.environ | {"WEFT_DEVICE": "cpu"}
    ran = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, timeout=100, check=False)
    assert (ran.returncode, ran.stdout) == (0, "ends: True\nends: True\n"), ran.stderr
