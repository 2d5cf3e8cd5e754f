# weft: sig = "void(float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""A barrier, which an adjoint kernel cannot have yet."""

from weft import cuda


@cuda.jit
def no_derivative(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * x[i]
    cuda.syncthreads()  # error: [E0401] "the derivative of a kernel with barriers is not supported"
