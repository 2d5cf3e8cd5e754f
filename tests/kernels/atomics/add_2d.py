# weft: sig = "void(float32[:, ::1])", show = ["ir"]
"""A tuple selects an element of a matrix."""

from weft import cuda


@cuda.jit
def add_2d(out):
    i, j = cuda.grid(2)
    cuda.atomic.add(out, (i, j), 1.0)
