# weft: sig = "void(float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""A reproducible kernel whose threads load one element of shared memory."""

import numpy as np
from weft import cuda


@cuda.jit(reproducible=True)
def unordered_sum(x, y):
    tile = cuda.shared.array(64, np.float64)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    cuda.syncthreads()
    y[i] = tile[i] * tile[0]  # error: [E0404] "threads add to one element of the gradient of `tile`"
