# weft: sig = "void(int64[::1], int64, int64)", show = ["ir", "ptx"]
"""// and % round to minus infinity; the divisor may be zero."""

from weft import cuda


@cuda.jit
def floor_division(out, a, b):
    out[0] = a // b
    out[1] = a % b
    out[2] = a // 8
    out[3] = a % 8
