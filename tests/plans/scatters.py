# weft: sig = "void(float32[::1], int64)"
from weft import cuda


@cuda.jit
def scatters(y, n):
    y[cuda.threadIdx.x * n] = 1
