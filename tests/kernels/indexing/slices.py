# weft: sig = "void(float32[::1], float32[:, ::1])", show = ["ir"]
"""Slices are views: a pointer, extents and strides."""

from weft import cuda


@cuda.jit
def slices(x, out):
    i = cuda.threadIdx.x
    tail = x[4:]
    every_other = x[1:10:2]
    row = out[i, :]
    row[0] = tail[i] + every_other[i]
