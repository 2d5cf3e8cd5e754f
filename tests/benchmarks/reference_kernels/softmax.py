"""Softmax of each row as loops for Numba."""

import math

import numpy as np

from reference_kernels.jit import prange, sums


@sums
def softmax(a, out):
    rows, columns = a.shape
    for row in prange(rows):
        largest = a[row, 0]
        for i in range(columns):
            largest = max(largest, a[row, i])
        total = np.float32(0)
        for i in range(columns):
            power = math.exp(a[row, i] - largest)
            out[row, i] = power
            total += power
        for i in range(columns):
            out[row, i] /= total
