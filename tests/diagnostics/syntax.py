# weft:
"""A text that is not Python."""

from weft import cuda


@cuda.jit("void(int32[::1])")
def syntax(x):
    x[0] = = 1  # error: [E0101] ""
