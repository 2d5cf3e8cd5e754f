"""Matrices as loops for Numba: products, and a transpose in tiles."""

from reference_kernels.jit import alone, loops, prange

TILE = 16


@loops
def matmul(a, b, out):
    for i in prange(out.shape[0]):
        out[i] = 0
        for k in range(a.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


@alone
def matmul_tiled(a, b, out):
    matmul(a, b, out)  # loops over tiles are slower


@loops
def transpose(a, out):
    n = out.shape[0]
    for row in prange(n // TILE):
        for column in range(0, n, TILE):
            for i in range(row * TILE, (row + 1) * TILE):
                for j in range(column, column + TILE):
                    out[i, j] = a[j, i]
