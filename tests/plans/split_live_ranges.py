# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def split_live_ranges(x, y):
    i = cuda.threadIdx.x
    y[i] = 0
    i = cuda.blockIdx.x
    y[i] = 1
