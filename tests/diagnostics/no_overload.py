# weft: sig = "void(float32[::1], complex64)"
"""A function of floats called with a complex number."""

import math

from weft import cuda


@cuda.jit
def no_overload(x, z):
    x[0] = math.sin(z)  # error: [E0205] "math.sin"
