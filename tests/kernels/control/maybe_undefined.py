# weft: sig = "void(float64[::1], float64[::1], int64)", show = ["ir"]
"""A variable that is undefined on some path reads as zero there; an array has no elements and a null pointer."""

from weft import cuda


@cuda.jit
def maybe_undefined(out, x, c):
    if c > 0:
        n = 3
        view = x[1:]
    if c > 1:
        n = 0.5
    for e in view:
        out[0] += e
    out[1] = n
