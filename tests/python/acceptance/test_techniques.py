"""A post's reductions, and the techniques that its readers mention: a minimal program for each.

`cuda.reduce`, warp primitives, fast math, PTX in a kernel, occupancy, and profiler output.
"""

import math

import numpy as np
import pytest
from weft import cuda, float32

FULL = 0xFFFFFFFF


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.reduce
def sum_reduce(a, b):
    return a + b


@pytest.mark.parametrize("count", [15, 1000, 1_000_000])
def test_a3_4_sums_by_reduce(count):
    a = np.arange(count, dtype=np.float64) + 1
    expected = a.sum()
    assert sum_reduce(a) == expected
    assert sum_reduce(a, init=10.0) == expected + 10
    on_device, out = cuda.to_device(a), cuda.to_device(np.zeros(1))
    assert sum_reduce(on_device, res=out) is None
    assert out.copy_to_host()[0] == expected
    largest = cuda.Reduce(lambda a, b: a if a > b else b)
    assert largest(on_device) == count


@cuda.jit
def sum_by_warps(x, out):
    # A warp sums its lanes' numbers without shared memory; the first lane adds the warp's sum to the total.
    i = cuda.grid(1)
    mine = float32(0.0)
    for k in range(i, x.size, cuda.gridsize(1)):
        mine += x[k]
    offset = 16
    while offset > 0:
        mine += cuda.shfl_down_sync(FULL, mine, offset)
        offset //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, mine)


@cuda.jit
def count_by_ballot(x, limit, out):
    i = cuda.grid(1)
    above = i < x.size and x[i] > limit
    votes = cuda.ballot_sync(FULL, above)
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, cuda.popc(votes))


def test_primitives_of_a_warp_add_and_count(device):
    n = size(device, 10_000_000, 100_003)
    x = np.random.default_rng(51).integers(0, 8, n).astype(np.float32)
    d_x = cuda.to_device(x)
    total, count = cuda.to_device(np.zeros(1)), cuda.to_device(np.zeros(1, np.int32))
    sum_by_warps[64, 256](d_x, total)
    count_by_ballot[math.ceil(n / 256), 256](d_x, float32(5), count)
    assert total.copy_to_host()[0] == x.sum(dtype=np.float64)
    assert count.copy_to_host()[0] == (x > 5).sum()


def softmax(x, out):
    row = cuda.blockIdx.x
    t = cuda.threadIdx.x
    total = float32(0.0)
    for i in range(x.shape[1]):
        total += math.exp(x[row, i])
    for i in range(t, x.shape[1], cuda.blockDim.x):
        out[row, i] = math.exp(x[row, i]) / total


def test_fast_math_is_near_and_takes_approximations(device):
    x = np.random.default_rng(52).standard_normal((8, 500)).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    for fast, rtol in ((False, 2e-6), (True, 2e-5)):
        kernel = cuda.jit(fastmath=fast)(softmax)
        out = np.zeros_like(x)
        kernel[8, 64](x, out)
        np.testing.assert_allclose(out, exact, rtol=rtol)
        if device == "cuda":
            (ptx,) = kernel.inspect_asm().values()
            assert ("ex2.approx" in ptx) >= fast
            # The divisor is the same in all iterations, so a reciprocal and products suffice.
            assert ("rcp.approx" in ptx or "div.approx" in ptx) == fast


@cuda.intrinsic("uint32(uint32, uint32, uint32)", "lop3.b32 %0, %1, %2, %3, 0x96;", pure=True)
def xor_of_three(a, b, c):
    return a ^ b ^ c


@cuda.jit
def parities(a, b, c, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = cuda.popc(xor_of_three(a[i], b[i], c[i])) & 1


def test_ptx_in_a_kernel_has_a_body_in_python_for_the_cpu():
    a, b, c = np.random.default_rng(53).integers(0, 1 << 32, (3, 1000), np.uint32)
    out = np.zeros(1000, np.uint8)
    parities[8, 128](a, b, c, out)
    np.testing.assert_array_equal(out, np.bitwise_count(a ^ b ^ c) & 1)


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def test_what_a_kernel_needs_of_a_multiprocessor_is_told():
    x, y = np.ones(100, np.float32), np.ones(100, np.float32)
    saxpy[1, 128](np.float32(2), x, y)
    assert (y == 3).all()
    (registers,) = saxpy.get_regs_per_thread().values()
    (shared,) = saxpy.get_shared_mem_per_block().values()
    (most,) = saxpy.get_max_threads_per_block().values()
    assert registers >= 0
    assert shared == 0
    assert most >= 128
