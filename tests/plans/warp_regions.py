# weft: sig = "void(float32[:, ::1], float32[::1])", assume = "warps"
from weft import cuda


@cuda.jit
def warp_regions(a, out):
    sums = cuda.shared.array(8, "float32")
    tid = cuda.threadIdx.x
    total = a[0, tid]
    for row in range(tid // 32, a.shape[0], 8):
        total += cuda.shfl_down_sync(0xFFFFFFFF, a[row, tid % 32], 16)
    if tid % 32 == 0:
        sums[tid // 32] = total
    cuda.syncthreads()
    out[tid] = sums[tid % 8]
