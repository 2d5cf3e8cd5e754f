# weft: sig = "void(float32[:], int64, int32[::1, :])", abi = "c", show = ["ir", "ptx"]
"""An array is passed as the fields of its descriptor, one parameter each; it may be in any address space."""

from weft import cuda


@cuda.jit(device=True)
def c_arrays(out, i, table):
    out[i] = table[i, 1]
