# weft: sig = "void(int64[::1], int64)", show = ["ir"]
"""Tuples of local variables: constant indices, lengths and unpacking."""

from weft import cuda


@cuda.jit
def tuples(out, a):
    pair = (a, a + 1.5)
    out[0] = pair[0]
    out[1] = len(pair)
    first, second = pair
    out[2] = first + second
    out[3] = (1, 2, 3)[-1]
