# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def if_convert(x, y):
    i = cuda.grid(1)
    value = x[i]
    if value < 0:
        value = value * 3
    y[i] = value
