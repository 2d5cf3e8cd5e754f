# weft: sig = "void(uint32[::1], uint32, uint32)", show = ["ir"]
"""Bitwise operators and shifts."""

from weft import cuda


@cuda.jit
def bits(out, a, b):
    out[0] = a & b
    out[1] = a | b
    out[2] = a ^ b
    out[3] = a << b
    out[4] = a >> b
    out[5] = ~a
