# weft: sig = "void(float32[::1], int8[::1], uint32[::1], float32[::1])", show = ["ir"]
"""Indices of other types are widened; unsigned ones cannot be negative."""

from weft import cuda


@cuda.jit
def index_types(x, small, words, out):
    i = cuda.threadIdx.x
    out[i] = x[small[i]] + x[words[i]]
