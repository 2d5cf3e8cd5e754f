# weft: sig = "void(boolean[::1], int32, float32)", show = ["ir"]
"""and, or, not: short-circuit evaluation; the result is one of the operands."""

from weft import cuda


@cuda.jit
def booleans(out, a, b):
    out[0] = a > 1 and b < 2.0
    out[1] = a > 1 or b < 2.0
    out[2] = not a
    out[3] = (a > 1) == (b < 2.0)
    out[4] = True
