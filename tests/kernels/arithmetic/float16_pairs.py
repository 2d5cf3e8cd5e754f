# weft: sig = "void(float16[::1], float16[::1])", targets = ["sm_80"], show = ["ptx"]
"""Two adjacent numbers that are both read before they are written are added in one instruction."""

from weft import cuda


@cuda.jit
def float16_pairs(x, y):
    i = cuda.grid(1) * 2
    a = x[i]
    b = x[i + 1]
    c = y[i]
    d = y[i + 1]
    y[i] = a + c
    y[i + 1] = b + d
