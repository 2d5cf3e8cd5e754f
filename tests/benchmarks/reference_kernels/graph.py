"""Sparse matrices and graphs in CSR as loops for Numba: products with a vector, and one step of a BFS."""

from second.graph import ZERO

from reference_kernels.jit import loops, prange, sums


@loops
def spmv(starts, columns, values, x, y):
    for row in prange(y.size):
        total = ZERO
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * x[columns[k]]
        y[row] = total


@sums
def spmv_long(starts, columns, values, x, y):
    for row in prange(y.size):
        total = ZERO
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * x[columns[k]]
        y[row] = total


@loops
def bfs(starts, neighbors, level, depth, out, changed):
    for node in prange(level.size):
        if level[node] == depth:
            for k in range(starts[node], starts[node + 1]):
                other = neighbors[k]
                if level[other] < 0:
                    out[other] = depth + 1
                    changed[0] = 1
