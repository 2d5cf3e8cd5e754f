# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda, float32


@cuda.jit
def speculate_stores(x, y):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    if tile[t] > 1:
        tile[t] = 1
    cuda.syncthreads()
    y[t] = tile[t]
