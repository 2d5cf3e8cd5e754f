"""Reductions of a warp by shuffles with 16, 8, 4, 2 and 1, after which all lanes have the result, bit by bit."""

import numpy as np
import pytest
from weft import cuda

FULL = 0xFFFFFFFF
STEPS = (16, 8, 4, 2, 1)


@cuda.jit
def sums(x, out):
    i = cuda.grid(1)
    value = x[i]
    d = 16
    while d > 0:
        value += cuda.shfl_xor_sync(FULL, value, d)
        d //= 2
    out[i] = value


@cuda.jit
def lowest(x, out):
    i = cuda.grid(1)
    value = x[i]
    for k in range(5):
        value = min(cuda.shfl_xor_sync(FULL, value, 16 >> k), value)
    out[i] = value


@cuda.jit
def highest(x, out):
    i = cuda.grid(1)
    value = x[i]
    for k in range(5):
        value = max(value, cuda.shfl_xor_sync(FULL, value, 16 >> k))
    out[i] = value


def tree(x, operator):
    value = x.reshape(-1, 32)
    lanes = np.arange(32)
    for step in STEPS:
        value = operator(value, value[:, lanes ^ step])
    return value.ravel()


def values(dtype, n):
    rng = np.random.default_rng(11)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)).astype(dtype)
    return rng.integers(0, 2**31, n).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint32, np.int64, np.uint8])
@pytest.mark.parametrize("block", [32, 96])
def test_results_have_the_bits_of_the_shuffles(dtype, block):
    x = values(dtype, 96 * 7)
    for kernel, operator in ((sums, np.add), (lowest, np.minimum), (highest, np.maximum)):
        out = np.zeros_like(x)
        kernel[x.size // block, block](x, out)
        np.testing.assert_array_equal(out, tree(x, operator))


@cuda.jit
def in_planes(x, out, rounds):
    """Warps that span rows of a block, a loop around the exchanges, and two values at once."""
    thread = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z + thread
    total = np.float32(0)
    for k in range(rounds):
        part = x[k, i]
        bits = np.uint32(1) << np.uint32((i + k) % 32)
        for d in (16, 8, 4, 2, 1):
            part += cuda.shfl_xor_sync(FULL, part, d)
        for d in (16, 8, 4, 2, 1):
            bits |= cuda.shfl_xor_sync(FULL, bits, d)
        total += part * np.float32(bits & np.uint32(2))
    out[i] = total


@pytest.mark.parametrize("block", [(64, 1, 1), (16, 16, 1), (8, 4, 2), (4, 8, 3)])
@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_warps_that_span_rows(block, rounds):
    n = int(np.prod(block)) * 3
    x = values(np.float32, rounds * n).reshape(rounds, n)
    out = np.zeros(n, np.float32)
    in_planes[3, block](x, out, rounds)
    expected = np.zeros(n, np.float32)
    for row in x:
        expected += tree(row, np.add) * np.float32(2)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def last_exchange(x, out):
    """What the last shuffle returns is read, too."""
    i = cuda.grid(1)
    value = x[i]
    other = value
    for d in (16, 8, 4, 2, 1):
        other = cuda.shfl_xor_sync(FULL, value, d)
        value += other
    out[i] = value * 2 + other


def test_exchanged_values_that_are_read():
    x = values(np.int64, 128)
    out = np.zeros_like(x)
    last_exchange[1, 128](x, out)
    lanes = np.arange(32)
    before = x.reshape(-1, 32)
    for step in STEPS[:-1]:
        before = before + before[:, lanes ^ step]
    other = before[:, lanes ^ 1]
    np.testing.assert_array_equal(out.reshape(-1, 32), (before + other) * 2 + other)


@cuda.jit
def softmax(x, out):
    """One warp a row, with exchanges in a loop that differs from row to row."""
    row = cuda.grid(1) // 32
    lane = cuda.laneid
    if row >= x.shape[0]:
        return
    top = np.float32(-np.inf)
    for k in range(lane, row * 9 + 1, 32):
        top = max(top, x[row, k])
    for d in (16, 8, 4, 2, 1):
        top = max(top, cuda.shfl_xor_sync(FULL, top, d))
    out[row, lane] = top


def test_a_warp_a_row():
    x = values(np.float32, 20 * 200).reshape(20, 200)
    out = np.zeros((20, 32), np.float32)
    softmax[5, 128](x, out)
    np.testing.assert_array_equal(out, [[x[row, : row * 9 + 1].max()] * 32 for row in range(20)])
