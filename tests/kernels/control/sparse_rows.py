# weft: sig = "void(float32[::1], int32[::1], int32[::1], float32[::1], float32[::1])", show = ["ir"]
"""A loop that may begin below zero and indexes by its counter is split; the second loop needs no wraparound."""

import numpy as np
from weft import cuda


@cuda.jit
def sparse_rows(values, columns, starts, x, y):
    i = cuda.grid(1)
    if i < y.size:
        total = np.float32(0)
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
