# weft: sig = "void(float32[:, ::1], float32[:, ::1])", block = "16,16"
from weft import cuda, float32


@cuda.jit
def unroll_short(x, y):
    tile = cuda.shared.array((16, 16), float32)
    i = cuda.threadIdx.y * 16 + cuda.threadIdx.x
    for k in range(2):
        tile[cuda.threadIdx.y, cuda.threadIdx.x + k] = x[k, i]
    cuda.syncthreads()
    y[0, i] = tile[cuda.threadIdx.x, cuda.threadIdx.y]
