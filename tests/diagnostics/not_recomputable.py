# weft: sig = "void(float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""A product of any number of factors, whose partial products the adjoint kernel would have to store."""

from weft import cuda


@cuda.jit
def not_recomputable(x, y):
    i = cuda.grid(1)
    p = 1.0
    for k in range(x.size):
        p = p * x[k]  # error: [E0403] "the reverse sweep needs `p` of each iteration"
    y[i] = p
