# weft: sig = "void(float16[::1], float16[::1], float32)", targets = ["sm_75"], show = ["ptx"]
"""float16 uses its own instructions; quotients, roots and functions are computed in float32."""

import math

from weft import cuda


@cuda.jit
def float16(out, x, wide):
    a = x[0]
    b = x[1]
    out[0] = a + b
    out[1] = a * b + x[2]
    out[2] = a / b
    out[3] = math.sqrt(a)
    out[4] = wide
    if a < b:
        out[5] = -a
