# weft: sig = "(Optional(int32), Optional(complex64))", abi = "numba", show = ["ptx"]
"""An argument that may be None is the value and a byte; a result that is None is the status -2, and nothing is written."""

from weft import cuda


@cuda.jit(device=True)
def numba_optional(n, z):
    if n is None:
        return None
    return n + 1 if z is None else n + int(z.imag)
