# weft: sig = "void(float32, float32, int32, int32[::1], int64[::1])", show = ["ir", "ptx"]
"""Counters are narrowed to 32 bits if their values fit, also where 64-bit arithmetic uses them."""

import numpy as np
from weft import cuda

ZERO = np.float32(0)
FOUR = np.float32(4)


@cuda.jit
def narrow_counters(cx, cy, limit, counts, sums):
    zx, zy = ZERO, ZERO
    count = 0
    while count < limit and zx * zx + zy * zy <= FOUR:
        zx, zy = zx * zx - zy * zy + cx, zx * zy + zx * zy + cy
        count += 1
    counts[0] = count
    for i in range(100):
        if cx > cy:
            break
        cx += cy
    sums[0] = i
    wide = 0
    while wide < 2147483646:
        wide += 3
        cy *= cx
        if cy > FOUR:
            break
    sums[1] = wide
    used = 0
    while used < limit:
        sums[used] += used
        used += 1
