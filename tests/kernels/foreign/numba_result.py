# weft: sig = "(boolean, complex64, Tuple(float16, none), int32[:])", abi = "numba", show = ["ptx"]
"""A status is returned, the result written where the first argument points; everything else is a parameter of its own."""

from weft import cuda


@cuda.jit(device=True)
def numba_result(b, z, pair, values):
    if b:
        raise ValueError
    return z, pair[0], b, values[-1]
