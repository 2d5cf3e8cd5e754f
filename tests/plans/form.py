# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def form(x, y):
    t = cuda.threadIdx.x
    x[t] = 0
    cuda.syncthreads()
    if x[t + 1] > 0:
        y[t] = 1
        cuda.syncthreads()
        y[t] += y[0]
