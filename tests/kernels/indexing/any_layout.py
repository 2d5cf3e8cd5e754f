# weft: sig = "void(float64[:, :], float64[:, :])", show = ["ir"]
"""An array of any layout passes its strides in bytes."""

from weft import cuda


@cuda.jit
def any_layout(a, out):
    i, j = cuda.grid(2)
    out[i, j] = a[j, i]
