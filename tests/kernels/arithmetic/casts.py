# weft: sig = "void(float64[::1], float64, int64, boolean)", show = ["ir"]
"""Every way to write a cast."""

import numpy as np

import weft
from weft import cuda, int16


@cuda.jit
def casts(out, a, b, c):
    out[0] = int(a)
    out[1] = float(b)
    out[2] = bool(a)
    out[3] = np.float32(a)
    out[4] = weft.uint8(b)
    out[5] = int16(a)
    out[6] = c
