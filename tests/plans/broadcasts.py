# weft: sig = "void(int32[::1], int64)"
from weft import cuda, int32


@cuda.jit
def broadcasts(out, n):
    tile = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    tile[t] = out[t]
    cuda.syncthreads()
    total = 0
    for k in range(n):
        if tile[k] == 0:
            break
        total += tile[k]
    cuda.syncthreads()
    out[t] = total
