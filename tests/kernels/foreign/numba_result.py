# weft: sig = "(boolean, complex64, Tuple(float16, none), int32[:])", abi = "numba", show = ["ptx", "nvvm"]
"""The function returns a status, and stores its result through its first parameter; arguments follow."""

from weft import cuda


@cuda.jit(device=True)
def numba_result(b, z, pair, values):
    if b:
        raise ValueError
    return z, pair[0], b, values[-1]
