# weft: sig = "void(float32[::1], int32[::1], uint8[::1], float64[::1], int32)"
"""Where Numba's typing computes with more bits than the arrays have, and where it does not."""

import numpy as np
from weft import cuda

SCALE = 0.1


@cuda.jit(device=True)
def mixed(a, b):
    return (a + b) // 2


@cuda.jit
def widening(x, y, z, d, n):
    i = cuda.grid(1)
    x[i] = x[i] * 0.5 + x[i + 1] * SCALE
    x[i] *= np.float32(0.5)
    y[i] = max(y[i] + n, 0)
    z[i] = mixed(z[i], z[i + 1])
    total = 0.0
    for k in range(4):
        total += x[i + k]
    d[i] = total
    d[i] *= 0.5
    x[i] = x[i] * n
    y[i] = -y[i] << 2
