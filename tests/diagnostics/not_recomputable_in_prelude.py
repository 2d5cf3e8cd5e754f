# weft: sig = "void(float64[::1], float64[::1], float64[::1], float64[::1])", adjoint = ["x", "y"]
"""A function of weft's own whose derivative is not supported: the error is at the call."""

import numpy as np
from weft import cuda


@cuda.jit
def not_recomputable_in_prelude(x, y):
    y[0] = np.prod(x)  # error: [E0403] "of each iteration, but the trip count has no constant bound"
