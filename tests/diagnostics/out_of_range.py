# weft: sig = "void(uint8[::1], int64)"
"""Integers that the type that they meet does not hold."""

from weft import cuda

LIMIT = 1000


@cuda.jit(typing="numpy")
def out_of_range(x, n):
    x[0] = x[1] + 300  # error: [E0218] "300"
    x[1] = LIMIT // x[0]  # error: [E0218] "1000"
    x[2] = -1  # error: [E0218] "-1"
    best = -1
    if n > 0:
        best = x[0]
    x[3] = best  # error: [E0203] "`best`"
