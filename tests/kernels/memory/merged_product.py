# weft: sig = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])", show = ["ir", "ptx"]
"""A block does the work of 2 × 2 blocks: each element that a thread loads is used twice."""

from weft import cuda, float32


@cuda.jit(coarsen_blocks=(2, 2))
def merged_product(a, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total
