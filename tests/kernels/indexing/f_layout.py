# weft: sig = "void(float64[::1, :], float64[::1, :])", show = ["ir"]
"""A Fortran array passes no strides, and its first index varies fastest."""

from weft import cuda


@cuda.jit
def f_layout(a, out):
    i, j = cuda.grid(2)
    out[i, j] = a[j, i]
