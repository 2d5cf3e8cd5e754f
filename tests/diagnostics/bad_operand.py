# weft: sig = "void(float32[::1])"
"""Operators on types that they do not take."""

from weft import cuda


@cuda.jit
def bad_operand(x):
    x[0] = x + 1  # error: [E0211] "array(float32, 1d, C)"
    x[1] = 1.5 << 2  # error: [E0211] "<<"
