# weft: sig = "void(int64[::1])"
"""A number is called."""

from weft import cuda


SIZE = 4


@cuda.jit
def not_callable(x):
    x[0] = SIZE(1)  # error: [E0214] ""
