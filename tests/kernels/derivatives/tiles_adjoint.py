# weft: sig = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1])", adjoint = ["a", "b", "out"], show = ["ir"]
"""Tiles in shared memory: the reverse sweep fills them again, and mirrors the barriers."""

import numpy as np
from weft import cuda

T = 16


@cuda.jit
def tiles_adjoint(a, b, out):
    left, right = cuda.shared.array((T, T), np.float32), cuda.shared.array((T, T), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
    s = np.float32(0)
    for t in range(a.shape[1] // T):
        left[y, x] = a[i, t * T + x]
        right[y, x] = b[t * T + y, j]
        cuda.syncthreads()
        for k in range(T):
            s += left[y, k] * right[k, x]
        cuda.syncthreads()
    out[i, j] = s
