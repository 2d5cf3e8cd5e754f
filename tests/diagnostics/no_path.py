# weft: sig = "void(float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""A derivative that is always 0."""

import math

from weft import cuda


@cuda.jit
def no_path(x, y):  # error: [E0402] "the derivative by `x` reaches no array that the kernel writes"
    i = cuda.grid(1)
    y[i] = math.floor(x[i])
