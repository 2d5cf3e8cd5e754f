# weft: sig = "void(int32[:, ::1], int64)", assume = ["disjoint", "nonneg", "small"], show = ["ir", "ptx"]
"""Indices that are loaded from the array that they index have 32 bits, whatever the first one is."""

from weft import cuda


@cuda.jit
def read_indices(parent, scale):
    p = cuda.blockIdx.x
    i = cuda.threadIdx.x * scale * scale
    while parent[p, i] != i:
        i = parent[p, i]
    parent[p, cuda.threadIdx.x] = i
