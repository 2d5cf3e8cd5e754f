"""Uniform values, which a CPU with thread loops computes once per block, are computed only if a thread is active."""

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def collatz(valid, n, out):
    i = cuda.grid(1)
    if valid[i] == 0:
        return
    cuda.syncthreads()
    turns = 0
    while n != 1:  # never ends for 0
        n = 3 * n + 1 if n % 2 else n // 2
        turns += 1
    if turns > 5:
        cuda.syncthreads()
        out[i] = turns
    else:
        cuda.syncthreads()
        out[i] = -turns


@cuda.jit
def guarded(valid, n, m, out):
    i = cuda.grid(1)
    if i >= m:
        return
    cuda.syncthreads()
    if valid[i] == 0:
        return
    cuda.syncthreads()
    turns = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        turns += 1
    cuda.syncthreads()
    out[i] = turns


@pytest.mark.parametrize("someone", [True, False])
def test_a_loop_after_every_thread_has_returned(someone):
    valid = np.zeros(32, np.int64)
    valid[7] = someone
    out = np.zeros(32, np.int64)
    collatz[1, 32](valid, 27 if someone else 0, out)
    assert out.tolist() == [111 if someone and i == 7 else 0 for i in range(32)]


def test_threads_outside_of_a_guard_do_not_count():
    valid = np.ones(32, np.int64)
    valid[:5] = 0
    out = np.zeros(32, np.int64)
    guarded[1, 32](valid, 0, 5, out)
    assert not out.any()
    guarded[1, 32](valid, 27, 8, out)
    assert out.tolist() == [111 if 5 <= i < 8 else 0 for i in range(32)]


@cuda.jit
def strided(gone, n, turns_of, cells):
    i = cuda.threadIdx.x + cuda.blockIdx.x * 40
    for e in range(i, 81, 40):
        cells[e] = 1
    if gone[i] > 0:
        return
    turns = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        turns += 1
    turns_of[i] = turns


def test_a_loop_stays_behind_the_return_of_all_threads_after_a_strided_loop():
    turns, cells = np.zeros(40, np.int64), np.zeros(81, np.int64)
    strided[1, 40](np.zeros(40, np.int64), 27, turns, cells)
    assert (turns == 111).all()
    strided[1, 40](np.ones(40, np.int64), 0, turns, cells)
    assert (turns == 111).all()
