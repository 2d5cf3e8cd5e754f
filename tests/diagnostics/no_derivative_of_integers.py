# weft: sig = "void(int64[::1], float64[::1], int64[::1], float64[::1])", adjoint = ["x", "y"]
"""The gradient by an array of integers."""

from weft import cuda


@cuda.jit
def no_derivative_of_integers(x, y):  # error: [E0401] "`x` is array(int64, 1d, C), which has no derivative"
    i = cuda.grid(1)
    y[i] = x[i]
