"""Statements of warps that must not become a warp region, or not in the simplest way: each kernel is wrong without one
condition of `tests/legality/conditions.txt`."""

import numpy as np
from harness import run
from weft import cuda

FULL = 0xFFFFFFFF


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def test_a_value_that_some_warps_assign():
    @cuda.jit
    def kernel(x, y, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        warp = t // 32
        last = x[t]
        part[t] = x[t]
        cuda.syncthreads()
        y[t] = part[63 - t]
        if x[warp] > 0:
            last = cuda.shfl_xor_sync(FULL, part[t], 3)
        cuda.syncthreads()
        out[t] = last

    x = values(1, 64)
    x[:2] = -5, 5
    run(kernel, 1, 64, x, np.zeros(64, np.float32), np.zeros(64, np.float32))


def test_an_array_of_the_thread_that_a_warp_reads():
    @cuda.jit
    def kernel(x, at, out):
        part = cuda.shared.array(64, np.float32)
        a = cuda.local.array(8, np.float32)
        t = cuda.threadIdx.x
        warp = t // 32
        for k in range(8):
            a[at[k]] = x[t] * k
        part[t] = x[t]
        cuda.syncthreads()
        total = np.float32(0)
        if x[warp] > -100:
            total = cuda.shfl_xor_sync(FULL, a[at[3]], 1)
        cuda.syncthreads()
        out[t] = total

    run(kernel, 1, 64, values(4, 64), np.arange(8)[::-1].copy(), np.zeros(64, np.float32))


def test_a_view_of_an_array_of_the_thread_that_a_warp_reads():
    @cuda.jit
    def kernel(x, at, out):
        part = cuda.shared.array(64, np.float32)
        a = cuda.local.array(8, np.float32)
        t = cuda.threadIdx.x
        warp = t // 32
        view = a[2:]
        for k in range(6):
            view[at[k]] = x[t] * k
        part[t] = x[t]
        cuda.syncthreads()
        total = np.float32(0)
        if x[warp] > -100:
            total = cuda.shfl_xor_sync(FULL, view[at[3]], 1)
        cuda.syncthreads()
        out[t] = total

    run(kernel, 1, 64, values(5, 64), np.arange(6)[::-1].copy(), np.zeros(64, np.float32))


def test_an_array_of_the_thread_of_a_warp():
    @cuda.jit
    def kernel(x, at, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        warp = t // 32
        part[t] = x[t]
        cuda.syncthreads()
        total = np.float32(0)
        if x[warp] > -100:
            a = cuda.local.array(8, np.float32)
            for k in range(8):
                a[at[k]] = x[t] * k
            total = cuda.shfl_xor_sync(FULL, part[t], 1)
            for k in range(8):
                total += a[at[7 - k]] * k
        cuda.syncthreads()
        out[t] = total

    run(kernel, 1, 64, values(6, 64), np.arange(8)[::-1].copy(), np.zeros(64, np.float32))


def test_a_loop_after_a_warp_region():
    @cuda.jit
    def kernel(x, y, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        warp = t // 32
        part[t] = x[t]
        cuda.syncthreads()
        total = np.float32(0)
        for j in range(warp, 5, 2):
            total += cuda.shfl_xor_sync(FULL, part[t], j)
        other = total
        for k in range(y.shape[0]):
            total = y[k, t] - total
            other = total - other
        cuda.syncthreads()
        out[t] = total + other + part[63 - t]

    run(kernel, 1, 64, values(8, 64), values(9, 40, 64), np.zeros(64, np.float32))


def test_a_loop_that_a_warp_leaves_in_a_branch():
    @cuda.jit
    def kernel(x, n, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        warp = t // 32
        part[t] = x[t]
        cuda.syncthreads()
        for k in range(6):
            if n > 2:
                if x[warp] > -100:
                    out[t] += cuda.shfl_sync(FULL, part[t], k)
                if k == 3:
                    break
            cuda.syncthreads()
            out[t] += 1
        cuda.syncthreads()
        out[t] += part[63 - t]

    run(kernel, 1, 64, values(3, 64), 5, np.zeros(64, np.float32))
