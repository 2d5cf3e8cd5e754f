# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def dead(x, y):
    t = cuda.threadIdx.x
    half = t // 2
    x[t] = 0
    cuda.syncthreads()
    y[half] = x[half]
