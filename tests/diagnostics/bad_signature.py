# weft:
"""A type that does not exist, in the decorator."""

from weft import cuda


@cuda.jit("void(flot32[::1])")  # error: [E0301] "flot32"
def bad_signature(x):
    x[0] = 1.0
