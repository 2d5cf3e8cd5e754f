# weft: sig = "void(int32[::1])", show = ["ir", "ptx"]
"""Shape 0: the launch determines the size."""

from weft import cuda, int32


@cuda.jit
def shared_dynamic(out):
    buffer = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    buffer[t] = t
    cuda.syncthreads()
    out[t] = buffer[cuda.blockDim.x - 1 - t]
