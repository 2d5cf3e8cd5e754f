# weft: sig = "void(float32[::1], int32)"
"""An array on one path and a number on the other."""

from weft import cuda


@cuda.jit
def cannot_join(x, n):
    if n > 0:
        v = x
    else:
        v = 0.0
    x[0] = v  # error: [E0203] "`v`"
