# weft: sig = "void(float32[::1], int64)"
from weft import cuda


@cuda.jit
def sink_exit_values(y, n):
    t = cuda.threadIdx.x
    computed = False
    for step in range(n):
        computed = t > step
        y[t] += y[0]
        cuda.syncthreads()
    if computed:
        y[t] = 1
