# weft: sig = "void(int32[::1], int32, int64)", show = ["ir"]
"""Integers are widened to int64 as Numba does, and stored as the array has them."""

from weft import cuda


@cuda.jit
def integers(out, a, b):
    out[0] = a + b
    out[1] = a - b
    out[2] = a * b
    out[3] = -a
    out[4] = +a
    out[5] = ~b
