# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def finish(x, y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        x[i] = 0
        cuda.syncthreads()
        y[i] = x[0]
