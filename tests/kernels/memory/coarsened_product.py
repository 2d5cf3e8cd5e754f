# weft: sig = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])", show = ["ptx"]
"""A thread computes 2 × 2 elements of a matrix product: each loaded element is used twice."""

from weft import cuda, float32


@cuda.jit(coarsen=(2, 2))
def coarsened_product(a, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total
