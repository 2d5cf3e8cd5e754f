"""Warp operations in branches and loops that differ from warp to warp, between barriers of the block."""

import math

import numpy as np
import pytest
from harness import run
from weft import cuda

FULL = 0xFFFFFFFF
ROWS, LENGTH = 12, 64
# Block shapes with rows of whole warps, and other ones, which run under masks.
SHAPES = [(32, 1), (32, 3), (64, 2), (32, 2, 2), (128, 1), (16, 4), (8, 8)]


@cuda.jit(device=True)
def warp_sum(value):
    offset = 16
    while offset > 0:
        value += cuda.shfl_xor_sync(FULL, value, offset)
        offset //= 2
    return value


@cuda.jit
def orthogonal(matrices, out):
    a = cuda.shared.array((ROWS, LENGTH), np.float32)
    tid = cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z)
    threads = cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z
    lane, warp, warps = tid % 32, tid // 32, threads // 32
    m = cuda.blockIdx.x
    for i in range(tid, LENGTH * ROWS, threads):
        a[i // LENGTH, i % LENGTH] = matrices[m, i // LENGTH, i % LENGTH]
    cuda.syncthreads()
    for k in range(ROWS):
        for j in range(k + 1 + warp, ROWS, warps):
            dot = np.float32(0)
            for i in range(lane, LENGTH, 32):
                dot += a[k, i] * a[j, i]
            dot = warp_sum(dot)
            for i in range(lane, LENGTH, 32):
                a[j, i] -= dot * a[k, i]
        cuda.syncthreads()
    for i in range(tid, LENGTH * ROWS, threads):
        out[m, i // LENGTH, i % LENGTH] = a[i // LENGTH, i % LENGTH]


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_shared_memory(shape):
    matrices = np.random.default_rng(1).integers(-1, 2, (3, ROWS, LENGTH)).astype(np.float32) / np.float32(16)
    expected = matrices.copy()
    for a in expected:
        for k in range(ROWS):
            for j in range(k + 1, ROWS):
                a[j] -= (a[k] * a[j]).sum() * a[k]
    got = run(orthogonal, 3, shape, matrices, np.zeros_like(matrices), rtol=1e-3, atol=1e-6)[-1]
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)


@cuda.jit
def counted(x, out, rounds):
    """Votes, values that are live into a region and out of it, and loops that differ from lane to lane."""
    counts = cuda.shared.array(32, np.int64)
    tid = cuda.threadIdx.x
    lane, warp = tid % 32, tid // 32
    total = np.int64(tid)
    last = x[cuda.blockIdx.x, tid]
    for round in range(rounds):
        step = round * 3 + 1
        if warp % 2 == round % 2:
            value = x[cuda.blockIdx.x, (tid + step) % x.shape[1]]
            while cuda.any_sync(FULL, value > 0):
                total += cuda.popc(cuda.ballot_sync(FULL, value > lane % 4))
                value -= step
            last = cuda.shfl_sync(FULL, value, step % 32)
        if lane == 0:
            counts[warp] = total
        cuda.syncthreads()
        total += counts[(warp + 1) % (cuda.blockDim.x // 32)] + last
        cuda.syncthreads()
    out[cuda.blockIdx.x, tid] = total


def counted_reference(x, rounds):
    out = np.zeros(x.shape, np.int64)
    for block, row in enumerate(x.astype(np.int64)):
        tid = np.arange(len(row))
        total, last, warps = tid.copy(), row.copy(), len(row) // 32
        for round in range(rounds):
            step = round * 3 + 1
            for warp in range(round % 2, warps, 2):
                lanes = slice(warp * 32, warp * 32 + 32)
                value = row[(tid[lanes] + step) % len(row)].copy()
                while (value > 0).any():
                    total[lanes] += (value > np.arange(32) % 4).sum()
                    value -= step
                last[lanes] = value[step % 32]
            counts = total[::32].copy()
            total += counts[(tid // 32 + 1) % warps] + last
        out[block] = total
    return out


@pytest.mark.parametrize("width", [32, 64, 160, 256])
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_values_across_regions(width, rounds):
    x = np.random.default_rng((width, rounds)).integers(-20, 30, (2, width))
    got = run(counted, 2, width, x, np.zeros(x.shape, np.int64), rounds)[1]
    np.testing.assert_array_equal(got, counted_reference(x, rounds))


@cuda.jit
def of_two_regions(x, out):
    """Two regions in a row, a uniform value that a region reads, and an array of each thread."""
    partial = cuda.shared.array(8, np.float32)
    own = cuda.local.array(2, np.float32)
    tid = cuda.threadIdx.x
    lane, warp = tid % 32, tid // 32
    n = x.shape[1]
    scale = np.float32(0.5)
    for column in range(x.shape[0]):
        scale *= np.float32(2)
        own[0] = x[column, tid]
        if warp > column % 2:
            own[1] = cuda.shfl_down_sync(FULL, own[0], 1)
        else:
            own[1] = scale
        total = np.float32(0)
        for row in range(warp, n // 32, cuda.blockDim.x // 32):
            value = x[column, row * 32 + lane] * scale
            total += warp_sum(value)
        if lane == 0:
            partial[warp] = total
        cuda.syncthreads()
        out[column, tid] = partial[warp] + own[0] + own[1]
        cuda.syncthreads()


@pytest.mark.parametrize("width", [32, 64, 256])
def test_two_regions(width):
    x = np.random.default_rng(width).integers(-9, 10, (5, width)).astype(np.float32)
    expected = np.zeros_like(x)
    warps = width // 32
    for column, row in enumerate(x):
        scale = np.float32(2**column)
        for warp in range(warps):
            lanes = slice(warp * 32, warp * 32 + 32)
            one = row[lanes]
            other = np.append(one[1:], one[-1]) if warp > column % 2 else scale
            expected[column, lanes] = one.sum() * scale + one + other
    got = run(of_two_regions, 1, width, x, np.zeros_like(x))[-1]
    np.testing.assert_array_equal(got, expected)


@cuda.jit
def returning(x, out):
    """Threads return before the region, so it runs under masks."""
    sums = cuda.shared.array(8, np.float32)
    tid = cuda.threadIdx.x
    warp = tid // 32
    if warp >= x.shape[0]:
        return
    for row in range(warp, x.shape[0], 2):
        total = warp_sum(x[row, tid % 32])
        if tid % 32 == 0:
            sums[row] = total
    cuda.syncthreads()
    out[tid] = sums[warp] * math.sqrt(np.float32(4))


@pytest.mark.parametrize("rows", [2, 4])
def test_threads_that_return(rows):
    x = np.random.default_rng(rows).integers(-9, 10, (rows, 32)).astype(np.float32)
    got = run(returning, 1, 64, x, np.zeros(64, np.float32))[-1]
    np.testing.assert_array_equal(got, np.repeat(x.sum(axis=1)[:2] * 2, 32))


@cuda.jit
def accumulating(x, counts, total):
    """Atomic operations in a region and after it, on arrays that workers have private copies of."""
    sums = cuda.shared.array(8, np.int64)
    tid = cuda.threadIdx.x
    lane, warp, warps = tid % 32, tid // 32, cuda.blockDim.x // 32
    own = 0
    for row in range(cuda.blockIdx.x * warps + warp, x.shape[0], cuda.gridDim.x * warps):
        value = warp_sum(x[row, lane])
        cuda.atomic.add(counts, x[row, lane] % 8, 1)
        if lane == 0:
            own += value * row
    if lane == 0:
        sums[warp] = own
    cuda.syncthreads()
    if warp == 0:
        value = warp_sum(sums[lane] if lane < warps else 0)
        if lane == 0:
            cuda.atomic.add(total, 0, value)


@pytest.mark.parametrize("width", [32, 96, 256])
@pytest.mark.parametrize("rows", [1, 13, 200])
def test_private_copies(width, rows):
    x = np.random.default_rng(rows).integers(0, 50, (rows, 32))
    got = run(accumulating, 3, width, x, np.zeros(8, np.int64), np.ones(1, np.int64))
    np.testing.assert_array_equal(got[1], np.bincount(x.ravel() % 8, minlength=8))
    assert got[2][0] == 1 + (x.sum(axis=1) * np.arange(rows)).sum()
