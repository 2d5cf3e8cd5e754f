"""Kernels like those of programs for numba.cuda; prints results that must be the same with and without numba."""

import warnings

import numba
import numba.cuda as nc
import numpy as np
from numba import cuda, float32, from_dtype, njit, types
from numba.core import config
from numba.core.errors import NumbaDeprecationWarning, NumbaPerformanceWarning, TypingError
from numba.cuda import grid, jit
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32
from numba.np.numpy_support import as_dtype

warnings.simplefilter("ignore", category=NumbaPerformanceWarning)
warnings.simplefilter("ignore", category=NumbaDeprecationWarning)
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

THREADS = 64
record = np.dtype([("x", np.float32), ("n", np.int64)], align=True)


@njit
def square(x):
    return x * x


@numba.jit(nopython=True)
def count(n):
    total = 0
    for i in numba.prange(n):
        total += i
    return total


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@jit
def total(x, out):
    part = cuda.shared.array(THREADS, float32)
    i, t = grid(1), cuda.threadIdx.x
    part[t] = square(x[i]) if i < x.size else types.float32(0)
    nc.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit("void(int64[:], int64)")
def triangle(out, n):
    out[0] = count(n)


@cuda.jit(types.void(types.float32[::1], types.int32))
def fill(x, n):
    i = numba.cuda.grid(1)
    if i < n:
        x[i] = numba.float32(i)


@cuda.jit((from_dtype(record)[:],))
def records(r):
    i = cuda.grid(1)
    if i < r.size:
        r[i].x = i
        r[i].n = i * i


@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = xoroshiro128p_uniform_float32(states, i)


@cuda.jit
def wrong(x):
    x[0] = "text" + 1


def main():
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    device = cuda.to_device(y)
    saxpy[2, THREADS](2.0, x, device)
    assert isinstance(device, DeviceNDArray)
    assert np.array_equal(device.copy_to_host(), 2 * x + 1)
    out = cuda.to_device(np.zeros(1, np.float32))
    total[2, THREADS](x, out)
    print("total", out.copy_to_host()[0])
    one = np.zeros(1, np.int64)
    triangle[1, 1](one, 10)
    print("triangle", one[0])
    fill[1, 128](x, np.int32(x.size))
    print("fill", x[:3])
    r = np.zeros(3, record)
    records[1, 32](r)
    print("records", r)
    drawn = np.zeros(4, np.float32)
    draw[1, 4](create_xoroshiro128p_states(4, seed=1), drawn)
    print("random", bool(((0 <= drawn) & (drawn < 1)).all()))
    try:
        wrong[1, 1](x)
    except TypingError as error:
        print("caught", type(error).__name__)
    try:
        raise nc.cudadrv.driver.CudaAPIError(700, "an address")
    except cuda.cudadrv.driver.CudaAPIError as error:
        print(error, error.code)
    print("dtype", as_dtype(types.float32))
    print("module", saxpy.__class__.__module__.partition(".")[0])


if __name__ == "__main__":
    main()
