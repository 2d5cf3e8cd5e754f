# weft: sig = "void(float32[:, ::1], float32[:, ::1])", show = ["ir"]
"""a[i][j] indexes a view."""

from weft import cuda


@cuda.jit
def chained(a, out):
    i = cuda.threadIdx.x
    out[i][0] = a[i][1]
