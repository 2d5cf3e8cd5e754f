# weft: sig = "void(float32[::1], float32[::1], float32[::1], float32[::1])", adjoint = ["x", "y"], show = ["ir"]
"""A function with a backward function, a constant of the derivative, and an adjoint in dynamic shared memory."""

import math

import numpy as np
from weft import cuda


def root_backward(x, y, g):
    return g / (np.float32(2) * y) if y > 0 else np.float32(0)


@cuda.custom_vjp(backward=root_backward)
def root(x):
    return math.sqrt(x)


@cuda.jit
def rules_adjoint(x, y):
    tile = cuda.shared.array(0, np.float32)
    i, thread = cuda.grid(1), cuda.threadIdx.x
    tile[thread] = root(x[i])
    cuda.syncthreads()
    y[i] = tile[tile.size - 1 - thread] * cuda.stop_gradient(x[i])
