# weft: sig = "void(float32[::1], float32[::1], float64[::1])", show = ["ir", "ptx"]
"""With `reproducible` a product is fused with the sum that contains it, and computed NaNs have one bit pattern."""

import math

from weft import cuda


@cuda.jit(reproducible=True)
def reproducible(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        product = x[i] * y[i]
        total = x[i] * x[i] - y[i] * y[i]
        total += y[i] * total
        y[i] = total + product
        x[i] = y[i]
        out[i] = math.copysign(math.sqrt(out[i]), out[i] - 1.0) / 3.0
