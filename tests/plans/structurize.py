# weft: sig = "void(float32[::1], float32[::1], int64)"
from weft import cuda


@cuda.jit
def structurize(x, y, n):
    i = cuda.grid(1)
    for k in range(n):
        if x[i] < 0:
            continue
        y[i] += x[k]
