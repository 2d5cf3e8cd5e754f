"""Conditional stores to shared memory: swaps in sorts, maxima, marks."""

import numpy as np
import pytest
from harness import run
from weft import cuda

KEYS = [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.float32, np.float64]


def keys(dtype, size, seed=1):
    random = np.random.default_rng(seed).integers(-100, 100, size)
    if np.dtype(dtype).kind != "f":
        return random.astype(dtype)
    x = random.astype(dtype) / 4
    x[::7], x[::11], x[::13], x[::17] = np.nan, -0.0, 0.0, np.inf
    return x


def same_bits(kernel, grid, block, *args):
    """As `run`, but also compares the signs of zeros."""
    got = run(kernel, grid, block, *args)
    expected = np.array(args[0])
    kernel_sorts(expected)
    np.testing.assert_array_equal(got[0].view(np.uint8), expected.view(np.uint8))


def odd_even_sort(v, size):
    for phase in range(size):
        for t in range(phase % 2, size - 1, 2):
            if v[t] > v[t + 1]:
                v[t], v[t + 1] = v[t + 1], v[t]


def kernel_sorts(x):
    for start in range(0, x.size, 64):
        row = x[start : start + 64].tolist()
        odd_even_sort(row, 64)
        x[start : start + 64] = row


@pytest.mark.parametrize("dtype", KEYS)
def test_odd_even_sort(dtype):
    @cuda.jit
    def odd_even(x):
        v = cuda.shared.array(64, dtype)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        v[tid] = x[i]
        cuda.syncthreads()
        for phase in range(64):
            if tid % 2 == phase % 2 and tid < 63:
                if v[tid] > v[tid + 1]:
                    swap = v[tid]
                    v[tid] = v[tid + 1]
                    v[tid + 1] = swap
            cuda.syncthreads()
        x[i] = v[tid]

    same_bits(odd_even, 4, 64, keys(dtype, 256))


@cuda.jit
def odd_even_at_once(x, n):
    v = cuda.shared.array(0, np.float32)
    tid = cuda.threadIdx.x
    v[tid] = x[tid]
    cuda.syncthreads()
    for phase in range(n):
        j = 2 * tid + (phase & 1)
        if j + 1 < n and v[j] > v[j + 1]:
            v[j], v[j + 1] = v[j + 1], v[j]
        cuda.syncthreads()
    x[tid] = v[tid]


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64])
def test_pairs_in_dynamic_memory(n):
    run(odd_even_at_once, 1, 64, keys(np.float32, 64), n, shared_bytes=256)


@pytest.mark.parametrize("dtype", KEYS)
@pytest.mark.parametrize("block", [8, 32, 256])
def test_bitonic_sort_of_keys_and_values(dtype, block):
    @cuda.jit
    def bitonic(x, values):
        v = cuda.shared.array(256, dtype)
        w = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        v[tid] = x[tid]
        w[tid] = values[tid]
        cuda.syncthreads()
        k = 2
        while k <= cuda.blockDim.x:
            j = k // 2
            while j > 0:
                partner = tid ^ j
                if partner > tid:
                    if tid & k == 0:
                        if v[tid] > v[partner]:
                            swap = v[tid]
                            v[tid] = v[partner]
                            v[partner] = swap
                            w[tid], w[partner] = w[partner], w[tid]
                    else:
                        if v[tid] < v[partner]:
                            swap = v[tid]
                            v[tid] = v[partner]
                            v[partner] = swap
                            w[tid], w[partner] = w[partner], w[tid]
                cuda.syncthreads()
                j //= 2
            k *= 2
        x[tid] = v[tid]
        values[tid] = w[tid]

    run(bitonic, 1, block, keys(dtype, block), np.arange(block, dtype=np.int32))


@cuda.jit
def bitonic_alone(x, k, j, n):
    v = cuda.shared.array(512, np.float32)
    tid = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    v[tid] = x[tid]
    cuda.syncthreads()
    partner = tid ^ j
    if partner > tid and partner < n:
        if tid & k == 0:
            if v[tid] > v[partner]:
                swap = v[tid]
                v[tid] = v[partner]
                v[partner] = swap
        else:
            if v[tid] < v[partner]:
                swap = v[tid]
                v[tid] = v[partner]
                v[partner] = swap
    cuda.syncthreads()
    x[tid] = v[tid]


@pytest.mark.parametrize("block", [1, 6, 16, 20, 96, 256, (16, 4), (5, 3), (8, 8)])
@pytest.mark.parametrize("j", [0, 1, 2, 4, 8, 16, 64])
def test_partners_that_are_near(block, j):
    size = int(np.prod(block))
    for k in (2, 8, 32):
        for n in (size, size - 3):
            run(bitonic_alone, 1, block, keys(np.float32, 512, k + j), k, j, n)


@cuda.jit
def both_sides(x, j, out):
    v = cuda.shared.array(64, np.int32)
    tid = cuda.threadIdx.x
    for k in range(tid, 64, cuda.blockDim.x):
        v[k] = x[k]
    cuda.syncthreads()
    partner = tid ^ j
    if partner > tid:
        out[tid] = v[tid] - v[partner]
    else:
        out[tid] = v[tid] + v[partner]


@pytest.mark.parametrize("block", [16, 40, 64])
@pytest.mark.parametrize("j", [1, 2, 4, 8, 3])
def test_both_partners_work(block, j):
    run(both_sides, 1, block, keys(np.int32, 64), j, np.zeros(64, np.int32))


@cuda.jit
def one_element(x, d, out):
    v = cuda.shared.array(128, np.int32)
    w = cuda.shared.array(128, np.int32)
    tid = cuda.threadIdx.x
    v[tid] = x[tid]
    v[tid + 64] = x[tid] + 5
    w[tid] = 0
    cuda.syncthreads()
    if v[tid] > v[tid + d]:  # the same element where d is 0
        swap = v[tid]
        v[tid] = v[tid + d]
        v[tid + d] = swap
    cuda.syncthreads()
    if v[tid] >= v[tid + d]:
        v[tid] = 1
        v[tid + d] = 2
    cuda.syncthreads()
    if v[tid] > w[tid]:
        if v[tid + d] > 0:
            w[tid] = v[tid]
            v[tid + d] = 3
        else:
            w[tid] = -1
            v[tid + d] = v[tid]
    cuda.syncthreads()
    if v[tid] > 0:
        v[tid] = 4
        if w[tid] == 3:
            w[tid] = 8
    else:
        w[tid] = 9
    cuda.syncthreads()
    if x[tid] > 50 and v[tid] < x[tid]:
        v[tid] = x[tid]
    cuda.syncthreads()
    out[tid] = v[tid]
    out[tid + 64] = w[tid]


@pytest.mark.parametrize("d", [0, 64])
def test_two_names_of_one_element(d):
    run(one_element, 1, 64, keys(np.int32, 64), d, np.zeros(128, np.int32))


@cuda.jit
def marks(x, out):
    flag = cuda.shared.array(4, np.int32)
    best = cuda.shared.array(64, np.int32)
    tid = cuda.threadIdx.x
    if tid < 4:
        flag[tid] = 0
    best[tid] = x[tid]
    cuda.syncthreads()
    if flag[0] == 0 and x[tid] == 70:
        flag[0] = 1
    cuda.syncthreads()
    if flag[tid % 4] < 3:
        if x[tid] == 71:
            flag[tid % 4] = 3
    cuda.syncthreads()
    step = 32
    while step > 0:
        if tid < step:
            if best[tid + step] > best[tid]:
                best[tid] = best[tid + step]
        cuda.syncthreads()
        step //= 2
    if tid < 4:
        out[tid] = flag[tid]
        out[tid + 4] = best[tid]


@pytest.mark.parametrize("at", [0, 5, 17, 63])
def test_marks_that_several_threads_may_set(at):
    x = np.arange(64, dtype=np.int32)
    x[at] = 70
    x[63 - at] = 71
    run(marks, 1, 64, x, np.zeros(8, np.int32))


@cuda.jit
def behind_and(x, n, out):
    v = cuda.shared.array(64, np.int32)
    tid = cuda.threadIdx.x
    v[tid] = x[tid]
    cuda.syncthreads()
    count = 0
    if tid + 1 < n and v[tid] > v[tid + 1] and x[tid + 1] > 3:
        out[tid] = v[tid]
        count += 1
    cuda.syncthreads()
    if tid > 0 and tid < n and (v[tid - 1] < v[tid] or v[tid] == 5):
        count += 10
    if tid < n and v[tid] > 0:
        for k in range(4):
            if k > 2 and v[k] > v[tid]:
                break
            count += 100
    out[tid + 64] = count


@pytest.mark.parametrize("n", [0, 1, 40, 63])
def test_conditions_that_are_looked_at_in_order(n):
    run(behind_and, 1, 64, keys(np.int32, 64), n, np.zeros(128, np.int32))
