# weft: sig = "void(float32[::1], int32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def if_convert(x, k, y):
    i = cuda.grid(1)
    value = x[i] + x[i + 2]
    if value < 0:
        value = value * 3
    if k[i] == 1:
        value = x[i + 1]
    y[i] = value
