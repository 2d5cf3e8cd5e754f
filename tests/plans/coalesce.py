# weft: sig = "void(float32[:, ::1], float32[:, ::1])"
from weft import cuda, float32


@cuda.jit
def coalesce(a, out):
    tile = cuda.shared.array((18, 18), float32)
    t = cuda.threadIdx.y * 16 + cuda.threadIdx.x
    for k in range(t, 324, 256):
        tile[k // 18, k % 18] = a[k // 18, k % 18]
    cuda.syncthreads()
    out[cuda.threadIdx.y, cuda.threadIdx.x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]
