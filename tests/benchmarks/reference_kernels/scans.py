"""Order within a block or an array as loops for Numba: sums, compaction, and a step of a bitonic sort."""

import numpy as np

from reference_kernels.jit import loops, prange


@loops
def inclusive_sums(x, out):
    for block in prange((x.size + 511) // 512):
        total = np.int32(0)
        for i in range(block * 512, min((block + 1) * 512, x.size)):
            total += x[i]
            out[i] = total


@loops
def exclusive_sums(x, out, totals):
    for block in prange(totals.size):
        total = np.float32(0)
        for i in range(block * 512, (block + 1) * 512):
            out[i] = total
            total += x[i]
        totals[block] = total


@loops
def compact(x, threshold, out, counts):
    for block in prange(counts.size):
        count = 0
        for i in range(block * 256, min((block + 1) * 256, x.size)):
            if x[i] > threshold:
                out[block * 256 + count] = x[i]
                count += 1
        counts[block] = count


@loops
def bitonic(x, j, k, out):
    for pair in prange(x.size // (2 * j)):
        start = pair * 2 * j
        ascending = (start & k) == 0
        for i in range(start, start + j):
            a = x[i]
            b = x[i + j]
            least = b if b < a else a
            most = a if b < a else b
            out[i] = least if ascending else most
            out[i + j] = most if ascending else least
