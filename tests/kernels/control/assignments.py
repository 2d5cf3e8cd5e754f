# weft: sig = "void(int64[::1], int64, int64)", show = ["ir"]
"""Chained, annotated and tuple assignment; a swap reads before it writes."""

from weft import cuda


@cuda.jit
def assignments(out, a, b):
    a, b = b, a
    c = d = a + 1
    e: int = 3
    (f, g), h = (c, d), e
    out[0], out[1] = f, g + h + b
