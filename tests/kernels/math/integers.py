# weft: sig = "void(float64[::1], int32)", show = ["ir"]
"""An integer argument is converted to float64."""

import math

from weft import cuda


@cuda.jit
def integers(out, a):
    out[0] = math.sqrt(a)
    out[1] = math.pow(a, 2)
