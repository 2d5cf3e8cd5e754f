# weft: sig = "void(float64[::1], float64)", show = ["ir"]
"""Functions of float64, and constants of the module."""

import math

from weft import cuda


@cuda.jit
def float64(out, a):
    out[0] = math.log(a)
    out[1] = math.atan2(a, 2.0)
    out[2] = math.hypot(a, math.pi)
    out[3] = math.expm1(a) if math.isfinite(a) else math.inf
