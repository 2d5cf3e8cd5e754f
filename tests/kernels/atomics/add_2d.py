# weft: sig = "void(float32[:, ::1])", show = ["ir"]
"""An element of a matrix is named by a tuple."""

from weft import cuda


@cuda.jit
def add_2d(out):
    i, j = cuda.grid(2)
    cuda.atomic.add(out, (i, j), 1.0)
