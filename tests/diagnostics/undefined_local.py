# weft: sig = "void(float32[::1], int32)"
"""A variable that no path, or only one, has given a value."""

from weft import cuda


@cuda.jit
def undefined_local(x, n):
    x[0] = total  # error: [E0204] "total"
    total = 1.0
