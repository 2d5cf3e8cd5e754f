# weft: sig = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])", block = "16,16"
from weft import cuda, float32


@cuda.jit
def strip_prefetches(a, b, c):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 16 + ty, cuda.blockIdx.x * 16 + tx
    total = float32(0)
    for start in range(0, a.shape[1], 16):
        left[ty, tx] = a[row, start + tx]
        right[ty, tx] = b[start + ty, column]
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    c[row, column] = total
