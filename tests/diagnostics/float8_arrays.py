# weft: sig = "void(float8_e4m3fn[::1], float8_e5m2[::1], float32[::1])"
"""Floats of 8 bits have no arithmetic, and are converted explicitly."""

import numpy as np

from weft import cuda


@cuda.jit
def float8_arrays(x, y, out):
    out[0] = x[0] + x[1]  # error: [E0211] "does not take"
    out[1] = -x[0]  # error: [E0211] "does not take"
    out[2] = x[0] < 1.0  # error: [E0211] "cannot compare"
    out[3] = np.sqrt(x[0])  # error: [E0205] "no overload"
    out[4] = x[0]  # error: [E0216] "cannot be stored"
    y[0] = x[0]  # error: [E0216] "cannot be stored"
    x[0] = "a"  # error: [E0216] "cannot be stored"
    x[1] = cuda.fp8.float8_e4m3fn(1.0, 2.0)  # error: [E0206] "takes 1 argument"
    x[2] = cuda.fp8.float8_e4m3fn(out)  # error: [E0205] "cannot be converted"
