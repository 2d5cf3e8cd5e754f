# weft: sig = "void(float32[:, ::1], float32[:, ::1])", show = ["ir"]
"""a[i][j] is a view and an index."""

from weft import cuda


@cuda.jit
def chained(a, out):
    i = cuda.threadIdx.x
    out[i][0] = a[i][1]
