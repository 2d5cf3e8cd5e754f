# weft: sig = "void(float64[::1], float64, float64)", show = ["ir"]
"""// and % of floats, as CPython computes them."""

from weft import cuda


@cuda.jit
def floor_division_float(out, a, b):
    out[0] = a // b
    out[1] = a % b
