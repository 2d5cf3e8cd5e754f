# weft: sig = "void(int64[::1])"
"""Targets that cannot take the value."""

from weft import cuda


@cuda.jit
def bad_assignment(x):
    a, b = 1, 2, 3  # error: [E0216] ""
    x.size = 4  # error: [E0216] ""
    x[0] = 1
