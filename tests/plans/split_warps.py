# weft: sig = "void(float32[:, ::1], float32[::1])", assume = "warps"
from weft import cuda


@cuda.jit
def split_warps(a, out):
    row = cuda.grid(1) // 32
    total = a[row, cuda.laneid]
    total += cuda.shfl_down_sync(0xFFFFFFFF, total, 16)
    out[row] = total
