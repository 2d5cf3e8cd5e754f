# weft: sig = "void(float64[::1], int64, float32)", show = ["ir"]
"""One function, compiled once for each tuple of argument types."""

from weft import cuda


@cuda.jit(device=True)
def double(a):
    return a + a


@cuda.jit
def specialized(out, a, b):
    out[0] = double(a)
    out[1] = double(b)
    out[2] = double(b)
