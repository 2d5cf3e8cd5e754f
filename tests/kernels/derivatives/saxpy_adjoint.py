# weft: sig = "void(float64, float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["a", "x", "y"], show = ["ir"]
"""Each thread has elements of its own, so the gradient by `x` needs no atomic operations."""

import math

from weft import cuda


@cuda.jit(device=True)
def scaled(a, x):
    return a * math.sin(x)


@cuda.jit
def saxpy_adjoint(a, x, y):
    i = cuda.grid(1)
    if i >= x.size:
        return
    y[i] = scaled(a, x[i]) + y[i]
