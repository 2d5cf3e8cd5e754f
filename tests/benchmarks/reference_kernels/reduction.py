"""A sum, and a histogram of bytes, as loops for Numba."""

import numpy as np
from numba import get_num_threads

from reference_kernels.jit import loops, prange, sums


@sums
def sum(x, out):
    total = np.float32(0)
    for i in prange(x.size):
        total += x[i]
    out[0] += total


@loops
def histogram(data, bins):
    parts = get_num_threads()
    counts = np.zeros((parts, bins.size), np.uint32)
    for part in prange(parts):
        for i in range(part * data.size // parts, (part + 1) * data.size // parts):
            counts[part, data[i]] += np.uint32(1)
    for part in range(parts):
        for i in range(bins.size):
            bins[i] += counts[part, i]
