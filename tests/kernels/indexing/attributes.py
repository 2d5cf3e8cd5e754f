# weft: sig = "void(int64[::1], float32[:, :])", show = ["ir"]
"""Attributes of an array."""

from weft import cuda


@cuda.jit
def attributes(out, a):
    out[0] = a.shape[0]
    out[1] = a.size
    out[2] = a.ndim
    out[3] = a.strides[1]
    out[4] = len(a)
