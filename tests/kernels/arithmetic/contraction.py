# weft: sig = "void(float32[::1], float32, float32, float32)", show = ["ptx"]
"""A product and a sum become one fma.rn."""

from weft import cuda


@cuda.jit
def contraction(out, a, b, c):
    out[0] = a * b + c
