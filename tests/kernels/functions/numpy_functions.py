# weft: sig = "void(float32[:, ::1], float32[::1])", show = ["ir"]
"""Functions of NumPy are functions of weft's own, inlined; one that the back ends have is no call."""

import numpy as np

from weft import cuda


@cuda.jit
def numpy_functions(x, out):
    i = cuda.grid(1)
    out[i] = np.maximum(np.sqrt(x[i, 0]), x[i].sum())
