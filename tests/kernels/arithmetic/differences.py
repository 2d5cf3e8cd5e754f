# weft: sig = "void(uint8[::1], uint8[::1], int32[::1])", show = ["ptx"]
"""The absolute value of a difference and the addition of it to a sum become one instruction."""

import numpy as np
from weft import cuda


@cuda.jit
def differences(a, b, out):
    i = cuda.grid(1)
    total = np.int32(0)
    for k in range(a.size):
        total += abs(np.int32(a[k]) - np.int32(b[k]))
    out[i] = total
