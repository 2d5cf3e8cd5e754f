# weft: sig = "void(float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""A barrier that some threads do not reach."""

from weft import cuda


@cuda.jit
def no_derivative(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        cuda.syncthreads()  # error: [E0401] "the derivative of a barrier under a condition that may differ in the block"
    y[i] = x[i] * x[i]
