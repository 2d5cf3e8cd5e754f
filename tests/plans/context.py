# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def context(x, y):
    t = cuda.threadIdx.x
    value = x[t]
    cuda.syncthreads()
    y[t] = value
