# weft: sig = "void(float32[:, ::1], float32[::1])", show = ["ir"]
"""NumPy functions are inlined functions of weft; those that the back ends implement need no call."""

import numpy as np

from weft import cuda


@cuda.jit
def numpy_functions(x, out):
    i = cuda.grid(1)
    out[i] = np.maximum(np.sqrt(x[i, 0]), x[i].sum())
