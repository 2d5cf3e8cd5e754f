# weft: sig = "void(float32[:, ::1], float32[:, ::1])", block = "16,16"
from weft import cuda, float32


@cuda.jit
def row_width(b, y):
    tile = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, b.shape[0], 16):
        tile[ty, tx] = b[start + ty, cuda.blockIdx.x * 16 + tx]
        cuda.syncthreads()
        for k in range(16):
            total += tile[k, tx]
        cuda.syncthreads()
    y[ty, cuda.blockIdx.x * 16 + tx] = total
