# weft: sig = "void(boolean[::1], int32, uint32, float32)", show = ["ir"]
"""Chained comparisons evaluate the middle once; operands are joined to one type."""

from weft import cuda


@cuda.jit
def comparisons(out, a, b, c):
    out[0] = 0 <= a < 10
    out[1] = a == b
    out[2] = c != c
    out[3] = a < b <= c
