# weft: sig = "void(float32[::1], float32, float32)", show = ["ptx"]
"""fastmath=True: approximate division, flushed denormals."""

from weft import cuda


@cuda.jit(fastmath=True)
def fastmath(out, a, b):
    out[0] = a / b
