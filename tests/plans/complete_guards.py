# weft: sig = "void(int32[::1], int32[::1])"
from weft import cuda


@cuda.jit
def complete_guards(x, y):
    t = cuda.threadIdx.x
    if t < 48:
        x[t] = 1
        cuda.syncthreads()
        x[t] += y[t]
        if cuda.laneid == 0:
            y[t // 32] = 1
