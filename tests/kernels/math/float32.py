# weft: sig = "void(float32[::1], float32)", show = ["ir", "ptx"]
"""Functions of float32 are computed in float32."""

import math

from weft import cuda


@cuda.jit
def float32(out, a):
    out[0] = math.sqrt(a)
    out[1] = math.sin(a)
    out[2] = math.exp(a)
    out[3] = math.floor(a)
