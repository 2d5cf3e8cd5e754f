# weft: sig = "void(float64[::1], int64)", show = ["ir"]
"""Local memory of a thread."""

import numpy as np

from weft import cuda


@cuda.jit
def local_array(out, n):
    window = cuda.local.array(4, np.float64)
    for i in range(4):
        window[i] = i
    out[cuda.grid(1)] = window[n]
