# weft: sig = "void(int32[::1], int32, int64)", show = ["ir"]
"""Integers are widened to int64 as in Numba, and converted to the array's type when stored."""

from weft import cuda


@cuda.jit
def integers(out, a, b):
    out[0] = a + b
    out[1] = a - b
    out[2] = a * b
    out[3] = -a
    out[4] = +a
    out[5] = ~b
