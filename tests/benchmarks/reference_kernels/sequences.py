"""Alignments of sequences as loops for Numba, row by row: Smith-Waterman with affine gaps, time warping in a band."""

import numpy as np
from fourth.sequences import HUGE, NONE

from reference_kernels.jit import loops, prange


@loops
def local_alignment(queries, lengths, targets, table, first_gap, next_gap, scores):
    n = targets.shape[1]
    for pair in prange(scores.size):
        h = np.zeros(n + 1, np.int32)
        f = np.full(n + 1, NONE, np.int32)
        best = 0
        for i in range(lengths[pair]):
            letter = queries[pair, i]
            e = NONE
            left = 0
            diagonal = 0
            for j in range(1, n + 1):
                e = max(e - next_gap, left - first_gap)
                down = max(f[j] - next_gap, h[j] - first_gap)
                f[j] = down
                left = max(max(diagonal + table[letter, targets[pair, j - 1]], 0), max(e, down))
                diagonal = h[j]
                h[j] = left
                best = max(best, left)
        scores[pair] = best


@loops
def warping(a, b, band, distances):
    n = a.shape[1]
    for pair in prange(distances.size):
        cost = np.full(n + 1, HUGE, np.float32)
        cost[0] = np.float32(0)
        for i in range(n):
            first = max(i - band, 0)
            diagonal = cost[first]
            left = HUGE
            cost[first] = HUGE
            for j in range(first, min(i + band, n - 1) + 1):
                difference = a[pair, i] - b[pair, j]
                above = cost[j + 1]
                least = min(diagonal, min(above, left))
                diagonal = above
                left = difference * difference + least
                cost[j + 1] = left
        distances[pair] = cost[n]
