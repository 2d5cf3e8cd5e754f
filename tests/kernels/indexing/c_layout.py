# weft: sig = "void(float64[:, :, ::1], float64[:, :, ::1])", show = ["ir", "ptx"]
"""A C array passes no strides."""

from weft import cuda


@cuda.jit
def c_layout(a, out):
    i = cuda.threadIdx.x
    out[i, 1, 2] = a[2, i, 1]
