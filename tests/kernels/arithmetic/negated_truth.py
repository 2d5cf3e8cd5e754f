# weft: sig = "void(boolean[::1], float64[::1])", show = ["ptx"]
"""A bool becomes a float by a select: ptxas 13.0 compiles the negation of a converted 0 to 0.0 instead of -0.0."""

import numpy as np

from weft import cuda


@cuda.jit(opt=False)
def negated_truth(x, out):
    i = cuda.grid(1)
    out[i] = -np.float64(x[i])
