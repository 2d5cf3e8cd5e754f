# weft: sig = "void(int32[::1])"
"""A text that is not Python."""

from weft import cuda


@cuda.jit
def syntax(x):
    x[0] = = 1  # error: [E0101] ""
