# weft: sig = "void(float32[::1], float32)", show = ["ir"]
"""Called functions precede their callers; a missing argument takes its default."""

from weft import cuda


@cuda.jit(device=True)
def scale(a, factor=2.0):
    return a * factor


@cuda.jit(device=True)
def shift(a, by):
    return scale(a) + scale(by, factor=0.5)


@cuda.jit
def nested(out, a):
    out[0] = shift(a, 1.0)
