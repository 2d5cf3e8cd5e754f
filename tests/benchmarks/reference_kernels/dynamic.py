"""Dynamic programming on int32 as loops for Numba: cheapest paths by rows, alignment and edit distance by cells."""

import numpy as np
from second.dynamic import LENGTH, ROWS

from reference_kernels.jit import loops, prange


@loops
def pathfinder_row(old, wall, new):
    columns = old.size
    for x in prange(columns):
        best = min(old[x], min(old[max(x - 1, 0)], old[min(x + 1, columns - 1)]))
        new[x] = best + wall[x]


@loops
def pathfinder(wall, start, out):
    old = start.copy()
    for row in range(ROWS):
        pathfinder_row(old, wall[row], out)
        if row + 1 < ROWS:
            old[:] = out


@loops
def alignment(a, b, gap, out):
    for pair in prange(out.shape[0]):
        row = np.empty(LENGTH + 1, np.int32)
        for j in range(LENGTH + 1):
            row[j] = -j * gap
        for i in range(LENGTH):
            diagonal = row[0]
            left = -(i + 1) * gap
            row[0] = left
            for j in range(LENGTH):
                best = max(diagonal + (2 if a[pair, i] == b[pair, j] else -1), row[j + 1] - gap)
                diagonal = row[j + 1]
                left = max(best, left - gap)
                row[j + 1] = left
                out[pair, i, j] = left


@loops
def edit_distance(a, b, out):
    n = a.shape[1]
    for pair in prange(out.size):
        row = np.empty(n + 1, np.int32)
        for j in range(n + 1):
            row[j] = j
        for i in range(n):
            diagonal = row[0]
            left = i + 1
            row[0] = left
            for j in range(n):
                best = min(diagonal + (0 if a[pair, i] == b[pair, j] else 1), row[j + 1] + 1)
                diagonal = row[j + 1]
                left = min(best, left + 1)
                row[j + 1] = left
        out[pair] = row[n]
