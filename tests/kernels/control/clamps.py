# weft: sig = "void(float32[::1], float32, int32[::1])", show = ["ir", "ptx"]
"""Clamps and comparisons of integers converted from floats, and atomics in shared memory in a strided loop."""

import numpy as np
from weft import cuda


@cuda.jit
def clamps(x, scale, bins):
    counts = cuda.shared.array(8, np.int32)
    tid = cuda.threadIdx.x
    if tid < 8:
        counts[tid] = 0
    cuda.syncthreads()
    for i in range(tid, x.size, cuda.blockDim.x):
        column = min(max(int(x[i] * scale), 0), 7)
        if int(x[i]) != 3:
            cuda.atomic.add(counts, column, 1)
    cuda.syncthreads()
    if tid < 8:
        bins[tid] = counts[tid]
