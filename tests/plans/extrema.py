# weft: sig = "void(int64[::1], int64)"
from weft import cuda


@cuda.jit
def extrema(y, n):
    i = cuda.grid(1)
    y[i] = i if i < n else n
