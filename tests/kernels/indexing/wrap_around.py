# weft: sig = "void(float32[::1], float32[::1], int64)", show = ["ir"]
"""Possibly negative indices count from the end."""

from weft import cuda


@cuda.jit
def wrap_around(x, out, k):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i - 1] + x[-1] + x[k]
