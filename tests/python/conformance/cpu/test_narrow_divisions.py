"""Quotients and remainders of a thread's index by constants: 32-bit divisions in each thread."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def divided(rest, quotient, shifted, behind):
    i = cuda.grid(1)
    if i < rest.size:
        rest[i] = i % 9
        quotient[i] = i // 9
        shifted[i] = (i - 1000) // 7 * 1000 + (i - 1000) % 7
        behind[i] = (i + 5) % 1000003


@pytest.mark.parametrize("threads", [1, 7, 64, 256, 1024])
@pytest.mark.parametrize("size", [1, 1000, 70001])
def test_of_the_global_index(threads, size):
    outs = [np.zeros(size, np.int64) for _ in range(4)]
    run(divided, -(-size // threads), threads, *outs)


@cuda.jit
def far(start, rest, quotient):
    i = start + cuda.grid(1)
    if cuda.grid(1) < rest.size:
        rest[cuda.grid(1)] = i % 11
        quotient[cuda.grid(1)] = i // 11


@pytest.mark.parametrize("start", [0, -1, -12345678901234567, 2**62, 2**63 - 500, -(2**63)])
def test_of_an_index_that_starts_far_away(start):
    run(far, 3, 128, start, np.zeros(384, np.int64), np.zeros(384, np.int64))


@cuda.jit
def rows(out):
    x, y = cuda.grid(2)
    tile = cuda.shared.array((16, 16), np.int64)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = (y * 16 + x) % 13
    cuda.syncthreads()
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = tile[cuda.threadIdx.y, cuda.threadIdx.x] + (x + cuda.threadIdx.y) // 3


@pytest.mark.parametrize("block", [(16, 16), (5, 3)])
def test_in_rows_of_a_block(block):
    run(rows, (4, 4), block, np.zeros((33, 47), np.int64))


@cuda.jit
def lanes(out):
    i = cuda.grid(1)
    value = i % 9
    for by in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, by)
    if i < out.size:
        out[i] = value + i % 3


@pytest.mark.parametrize("threads", [32, 128])
def test_in_warps(threads):
    run(lanes, 8, threads, np.zeros(8 * threads - 5, np.int64))


@cuda.jit
def every_third(out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        for k in range(5):
            if i % 3 == 1:
                total += i % 5 + k
        out[i] = total


def test_conditions_on_remainders():
    run(every_third, 9, 100, np.zeros(850, np.int64))
