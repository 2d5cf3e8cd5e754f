# weft:
"""Launch rules that cannot be translated to integer expressions."""

import math

from weft import cuda


@cuda.jit("void(float32[::1])", launch=lambda x: (math.ceil(x.size / 256), 256))  # error: [E0309] "math.ceil"
def called(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit("void(float32[::1], float32[::1])", launch=lambda n: (n.size, 256), out=cuda.like("x"))  # error: [E0309] "n"
def of_another_name(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]
