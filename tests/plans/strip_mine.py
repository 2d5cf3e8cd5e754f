# weft: sig = "void(float32[::1], int64, float32[::1])"
from weft import cuda


@cuda.jit
def strip_mine(a, n, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(n):
        total += a[i + k]
    y[i] = total
