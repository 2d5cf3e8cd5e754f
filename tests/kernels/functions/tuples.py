# weft: sig = "void(int64[::1], int64)", show = ["ir"]
"""A device function that returns two values."""

from weft import cuda


@cuda.jit(device=True)
def divide(a, b):
    return a // b, a % b


@cuda.jit
def tuples(out, a):
    q, r = divide(a, 7)
    out[0] = q
    out[1] = r
