# weft: sig = "(Optional(int32), Optional(complex64))", abi = "numba", show = ["ptx"]
"""An optional argument is the value and a byte; a result that is None is the status -2, without a stored value."""

from weft import cuda


@cuda.jit(device=True)
def numba_optional(n, z):
    if n is None:
        return None
    return n + 1 if z is None else n + int(z.imag)
