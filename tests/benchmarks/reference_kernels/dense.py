"""Dense matrices as loops for Numba: products, Jacobi, small inverses, LU of small ones, and Floyd-Warshall."""

from second.dense import ONE, ZERO

from reference_kernels.jit import loops, prange, sums


@loops
def int_matmul(a, b, c):
    for i in prange(c.shape[0]):
        c[i] = 0
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@sums
def matvec(a, x, y):
    for row in prange(a.shape[0]):
        total = ZERO
        for k in range(a.shape[1]):
            total += a[row, k] * x[k]
        y[row] = total


@sums
def jacobi(a, b, x, out):
    n = b.size
    for i in prange(n):
        total = ZERO
        for j in range(n):
            total += ZERO if j == i else a[i, j] * x[j]
        out[i] = (b[i] - total) / a[i, i]


@loops
def inverse(m, out):
    for i in prange(m.shape[0]):
        a, b, c = m[i, 0, 0], m[i, 0, 1], m[i, 0, 2]
        d, e, f = m[i, 1, 0], m[i, 1, 1], m[i, 1, 2]
        g, h, k = m[i, 2, 0], m[i, 2, 1], m[i, 2, 2]
        ca = e * k - f * h
        cb = f * g - d * k
        cc = d * h - e * g
        scale = ONE / (a * ca + b * cb + c * cc)
        out[i, 0, 0] = ca * scale
        out[i, 0, 1] = (c * h - b * k) * scale
        out[i, 0, 2] = (b * f - c * e) * scale
        out[i, 1, 0] = cb * scale
        out[i, 1, 1] = (a * k - c * g) * scale
        out[i, 1, 2] = (c * d - a * f) * scale
        out[i, 2, 0] = cc * scale
        out[i, 2, 1] = (b * g - a * h) * scale
        out[i, 2, 2] = (a * e - b * d) * scale


@loops
def lu(matrices, out):
    for matrix in prange(matrices.shape[0]):
        for i in range(16):
            for j in range(16):
                out[matrix, i, j] = matrices[matrix, i, j]
        for k in range(15):
            for i in range(k + 1, 16):
                out[matrix, i, k] /= out[matrix, k, k]
                for j in range(k + 1, 16):
                    out[matrix, i, j] -= out[matrix, i, k] * out[matrix, k, j]


@loops
def floyd(distance, k, out):
    n = distance.shape[0]
    for i in prange(n):
        for j in range(n):
            out[i, j] = min(distance[i, j], distance[i, k] + distance[k, j])
