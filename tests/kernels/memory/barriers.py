# weft: sig = "void(int32[::1])", show = ["ir", "ptx"]
"""The block barrier, a warp barrier, and the three fences."""

from weft import cuda


@cuda.jit
def barriers(out):
    out[cuda.grid(1)] = 1
    cuda.syncthreads()
    cuda.syncwarp()
    cuda.syncwarp(0x0F)
    cuda.threadfence_block()
    cuda.threadfence()
    cuda.threadfence_system()
    out[cuda.grid(1)] += 1
