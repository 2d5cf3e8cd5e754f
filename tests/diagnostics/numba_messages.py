# weft: sig = "void(float32[::1], int32)"
"""A program that imports numba gets Numba's words, too."""

from numba import cuda, float32

TABLE = {"a": 1}


@cuda.jit
def numba_messages(x, n):
    x[0] = TABLE["a"]  # error: [E0202] "TABLE"
    mine = cuda.local.array(n, float32)  # error: [E0210] "cuda.local.array"
    x[1] = mine[0]
