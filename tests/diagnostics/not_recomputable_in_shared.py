# weft: sig = "void(float64[::1], int64, float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""Time steps in shared memory: each overwrites the values that its derivative needs."""

import math

import numpy as np
from weft import cuda


@cuda.jit
def not_recomputable_in_shared(x, steps, y):
    tile = cuda.shared.array(64, np.float64)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    for _ in range(steps):
        cuda.syncthreads()
        v = math.sin(tile[63 - i])  # error: [E0403] "the reverse sweep needs this element of `tile` of each iteration"
        cuda.syncthreads()
        tile[i] = v
    y[i] = tile[i]
