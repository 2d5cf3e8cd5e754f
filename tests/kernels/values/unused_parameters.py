# weft: sig = "void(float32[::1], float32[:, :], int64, float32)", show = ["ir"]
"""Unused parameters are not passed."""

from weft import cuda


@cuda.jit
def unused_parameters(out, a, b, c):
    unused = a[0, 0] + b
    out[0] = c
