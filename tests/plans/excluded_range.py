# weft: sig = "void(float32[::1], int32)"
from weft import cuda


@cuda.jit
def excluded_range(y, n):
    if not (cuda.threadIdx.x > 2 and cuda.threadIdx.x < n):
        y[cuda.threadIdx.x] = 1
