# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def propagate_flags(x, y):
    i = cuda.threadIdx.x
    if i > 3:
        flag = True
        y[i] = x[i]
    else:
        flag = False
    cuda.syncthreads()
    if flag:
        x[i] = y[0]
