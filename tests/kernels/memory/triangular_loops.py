# weft: sig = "void(float32[:, ::1], float32[::1])", show = ["ptx"]
"""Loops over a thread-local matrix whose bounds depend on the counter of an unrolled loop are unrolled, too: the matrix is
in registers."""

import numpy as np
from weft import cuda


@cuda.jit
def triangular_loops(values, out):
    i = cuda.grid(1)
    a = cuda.local.array((4, 4), np.float32)
    for p in range(4):
        for q in range(p, 4):
            a[p, q] = values[4 * p + q, i]
            a[q, p] = a[p, q] * np.float32(2)
    total = np.float32(0)
    for p in range(3):
        for q in range(p + 1, 4):
            for k in range(4):
                total += a[p, k] * a[k, q] * a[q - p, k]
    out[i] = total
