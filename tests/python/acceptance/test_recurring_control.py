"""Control flow that programs for numba.cuda rely on: variables unset on a path, returns, barriers, spin loops."""

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def busiest(starts, edges, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        if i < starts.size - 1:
            my_num_nbs = starts[i + 1] - starts[i]
            first = edges[starts[i]]
        best = -1
        for k in range(starts[i] if i < starts.size - 1 else 0, edges.size):
            if i < starts.size - 1 and k < starts[i] + my_num_nbs:
                candidate = edges[k]
                if candidate > best:
                    best = candidate
        if i < starts.size - 1:
            out[i, 0], out[i, 1], out[i, 2] = my_num_nbs, best, first


def test_variables_that_a_path_leaves_unset():
    starts, edges = np.array([0, 2, 5, 6]), np.array([4, 1, 9, 2, 3, 8, 7])
    out = np.full((5, 3), -5)
    busiest[1, 32](starts, edges, out)
    np.testing.assert_array_equal(out, [[2, 4, 4], [3, 9, 9], [1, 8, 8], [-5, -5, -5], [-5, -5, -5]])


@cuda.jit
def reversed_head(x, out, n):
    buffer = cuda.shared.array(64, np.int64)
    i = cuda.threadIdx.x
    if i >= n:
        return
    buffer[i] = x[i]
    cuda.syncthreads()
    value = buffer[n - 1 - i]
    if i % 2:
        out[i] = value
        return
    cuda.syncthreads()
    buffer[i] = -value
    cuda.syncthreads()
    out[i] = buffer[i]


@pytest.mark.parametrize("n", [64, 33, 1])
def test_barriers_after_some_threads_returned(n):
    x, out = np.arange(64) + 100, np.zeros(64, np.int64)
    reversed_head[1, 64](x, out, n)
    i = np.arange(n)
    expected = np.zeros(64, np.int64)
    expected[:n] = np.where(i % 2, x[:n][::-1], -x[:n][::-1])
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def running_totals(x, totals, ready):
    # Each block waits until the previous one has summed all blocks before it.
    partial = cuda.shared.array(32, np.int64)
    t, block = cuda.threadIdx.x, cuda.blockIdx.x
    i = cuda.grid(1)
    partial[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    if t == 0:
        total = 0
        for k in range(32):
            total += partial[k]
        if block > 0:
            while cuda.atomic.add(ready, block - 1, 0) == 0:
                pass
            total += cuda.atomic.add(totals, block - 1, 0)
        cuda.atomic.add(totals, block, total)
        cuda.threadfence()
        cuda.atomic.add(ready, block, 1)


def test_blocks_wait_for_the_one_before_them():
    x = np.random.default_rng(13).integers(0, 100, 500)
    totals, ready = np.zeros(16, np.int64), np.zeros(16, np.int32)
    running_totals[16, 32](x, totals, ready)
    ends = np.minimum(np.arange(1, 17) * 32, x.size) - 1
    np.testing.assert_array_equal(totals, np.cumsum(x)[ends])


@cuda.jit
def triangular_solve(lower, b, x, done):
    # One thread per row: row i needs the results of the rows before it, and waits for each of them.
    i = cuda.grid(1)
    if i < b.size:
        total = b[i]
        for k in range(i):
            while cuda.atomic.add(done, k, 0) == 0:
                pass
            cuda.threadfence()
            total -= lower[i, k] * cuda.atomic.add(x, k, 0.0)
        cuda.atomic.add(x, i, total / lower[i, i])
        cuda.threadfence()
        cuda.atomic.add(done, i, 1)


def test_threads_wait_for_each_other_in_global_memory():
    n = 24
    lower = np.tril(np.random.default_rng(14).random((n, n))) + n * np.eye(n)
    b, x, done = np.ones(n), np.zeros(n), np.zeros(n, np.int32)
    triangular_solve[3, 8](lower, b, x, done)
    np.testing.assert_allclose(x, np.linalg.solve(lower, b), rtol=1e-12)


@cuda.jit
def hand_over(out, turn):
    # Within one block: each thread polls shared memory until it may run.
    current = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    if i == 0:
        current[0] = 0
    cuda.syncthreads()
    while cuda.atomic.add(current, 0, 0) != i:
        pass
    out[i] = cuda.atomic.add(turn, 0, 1)
    cuda.threadfence()
    cuda.atomic.add(current, 0, 1)


def test_threads_of_a_block_take_turns():
    out, turn = np.full(48, -1), np.zeros(1, np.int64)
    hand_over[1, 48](out, turn)
    np.testing.assert_array_equal(out, np.arange(48))


@cuda.jit
def sums_of_warps(x, sums, masked):
    i = cuda.grid(1)
    value = x[i]
    for offset in (16, 8, 4, 2, 1):
        # The mask is a literal outside the range of int32.
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    if i % 32 == 0:
        sums[i // 32] = value
    # A mask of all lanes as a signed number.
    masked[i] = cuda.shfl_sync(-1, x[i], 31)


def test_lanes_hand_floats_down_under_a_literal_mask():
    x = np.random.default_rng(71).integers(-99, 99, 256).astype(np.float32)
    sums, last = np.zeros(8, np.float32), np.zeros(256, np.float32)
    sums_of_warps[2, 128](x, sums, last)
    np.testing.assert_array_equal(sums, x.reshape(8, 32).sum(axis=1))
    np.testing.assert_array_equal(last, np.repeat(x[31::32], 32))
