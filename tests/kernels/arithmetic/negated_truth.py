# weft: sig = "void(boolean[::1], float64[::1])", show = ["ptx"]
"""A truth becomes one of two floats, not a converted 1 or 0, of whose negative ptxas 13.0 makes 0.0 where it is -0.0."""

import numpy as np

from weft import cuda


@cuda.jit(opt=False)
def negated_truth(x, out):
    i = cuda.grid(1)
    out[i] = -np.float64(x[i])
