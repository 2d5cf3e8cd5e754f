# weft: sig = "void(float64[::1], int64)", show = ["ir"]
"""Returns of different types are joined."""

from weft import cuda


@cuda.jit(device=True)
def clamp(a):
    if a < 0:
        return 0
    if a > 10:
        return 10.5
    return a


@cuda.jit
def early_return(out, a):
    out[0] = clamp(a)
