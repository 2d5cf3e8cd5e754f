# weft: sig = "void(float32[:], int64, int32[::1, :])", abi = "c", show = ["ir", "ptx"]
"""An array is its descriptor's fields, each a parameter; it may be in any memory."""

from weft import cuda


@cuda.jit(device=True)
def c_arrays(out, i, table):
    out[i] = table[i, 1]
