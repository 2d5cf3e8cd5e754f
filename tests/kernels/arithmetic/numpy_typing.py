# weft: sig = "void(uint8[::1], int32[::1], float32[::1])", show = ["ir"]
"""With NumPy's typing, numbers keep their types: literals do not widen; counters and extents are Python integers."""

import math

from weft import cuda

HALF = 0.5


@cuda.jit(device=True)
def blend(a, b):
    return (a + 3 * b) // 4


@cuda.jit(typing="numpy")
def numpy_typing(x, y, z):
    i = cuda.grid(1)
    x[i] = blend(x[i], x[i + 1])
    best = 0
    for k in range(4):
        best = max(best, y[i + k] - k)
    y[i] = best >> 1
    mean = 0.0
    for k in range(z.size):
        mean += z[k] * HALF
    z[i] = math.sqrt(mean / z.size)
