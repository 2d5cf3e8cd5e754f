"""Measures rates of a GPU that no data sheet has and that the profiler's bounds need: L2, atomics, one multiprocessor.

Needs a GPU and CuPy. Each row is the best of some launches of CUDA C++, which keep all data in L2.
"""

from __future__ import annotations

import sys
from typing import Any

import tables

SOURCE = r"""
extern "C" __global__ void load_whole(float4 *a, int n, int rounds, float *out) {
    float sum = 0;
    for (int r = 0; r < rounds; r++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
            float4 v = __ldcg(a + (i ^ (r << 8)));
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == 12345.0f) *out = sum;
}
extern "C" __global__ void load_sectors(float *a, int n, int rounds, float *out) {
    float sum = 0;
    for (int r = 0; r < rounds; r++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            sum += __ldcg(a + 8 * (i ^ (r << 8)));
    if (sum == 12345.0f) *out = sum;
}
extern "C" __global__ void store_whole(float4 *a, int n, int rounds, float *out) {
    for (int r = 0; r < rounds; r++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            a[i ^ (r << 8)] = make_float4(r, r, r, r);
}
extern "C" __global__ void store_sectors(float *a, int n, int rounds, float *out) {
    for (int r = 0; r < rounds; r++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            a[8 * (i ^ (r << 8))] = r;
}
#define ATOMICS(NAME, TYPE)                                                                     \
    extern "C" __global__ void NAME(TYPE *a, int n, int rounds, float *mask) {                  \
        int m = (int)mask[0], s = (int)mask[1];                                                 \
        TYPE one = (TYPE)mask[2];                                                               \
        for (int r = 0; r < rounds; r++)                                                        \
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) \
                atomicAdd(a + ((i * s) & m), one);                                              \
    }
ATOMICS(atomics_float, float)
ATOMICS(atomics_int, int)
ATOMICS(atomics_double, double)
"""


def best(cupy: Any, kernel: Any, grid: int, block: int, args: tuple[Any, ...]) -> float:
    """The least time of a launch in seconds."""
    times = []
    for _ in range(7):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        kernel((grid,), (block,), args)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return min(times)


def main() -> int:
    import cupy
    import numpy as np

    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",))
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    data = cupy.zeros(1 << 22, np.float32)
    out = cupy.zeros(4, np.float32)
    int32 = np.int32
    print(tables.head("access", "blocks", "per second"))
    for blocks in (1, 16, 8 * multiprocessors):
        rounds = 20 if blocks > 16 else 1
        for name, n, per in (("load_whole", 1 << 20, 16), ("load_sectors", 1 << 19, 32), ("store_whole", 1 << 20, 16),
                             ("store_sectors", 1 << 19, 32)):  # fmt: skip
            seconds = best(cupy, module.get_function(name), blocks, 1024 if blocks <= 16 else 256,
                           (data, int32(n), int32(rounds), out))  # fmt: skip
            print(tables.line(f"{name}, bytes of sectors", f"{blocks}", f"{n * per * rounds / seconds / 1e9:.0f} GB"))
    n = 1 << 22
    for name, dtype in (("float", np.float32), ("int", np.int32), ("double", np.float64)):
        for text, addresses, stride in (("one address", 1, 1), ("8 addresses", 8, 1), ("32 addresses", 32, 1),
                                        ("256 addresses", 256, 1), ("1,024 addresses", 1024, 1),
                                        ("65,536 addresses", 65536, 1), ("65,536 sectors", 65536, 8),
                                        ("32 sectors", 32, 8)):  # fmt: skip
            array = cupy.zeros(1 << 22, dtype)
            given = cupy.array([(addresses - 1) * stride, stride, 1, 0], np.float32)
            kernel = module.get_function(f"atomics_{name}")
            seconds = best(cupy, kernel, 8 * multiprocessors, 256, (array, int32(n), int32(1), given))
            print(tables.line(f"atomic add of {name}, {text}", f"{8 * multiprocessors}", f"{n / seconds / 1e9:.2f} G"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
