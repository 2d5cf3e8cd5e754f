# weft: sig = "void(float32[::1], int64)"
from weft import cuda


@cuda.jit
def rematerialize_predicates(y, n):
    t = cuda.threadIdx.x
    for step in range(n):
        known = t > step
        y[t] = step
        cuda.syncthreads()
        if known:
            y[t] += y[0]
        cuda.syncthreads()
