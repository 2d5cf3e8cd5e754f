# weft: sig = "void(int32[::1])", show = ["ir", "ptx"]
"""What a thread knows of its place."""

from weft import cuda


@cuda.jit
def special_registers(out):
    out[0] = cuda.threadIdx.x + cuda.threadIdx.y + cuda.threadIdx.z
    out[1] = cuda.blockIdx.x + cuda.blockIdx.y + cuda.blockIdx.z
    out[2] = cuda.blockDim.x + cuda.blockDim.y + cuda.blockDim.z
    out[3] = cuda.gridDim.x + cuda.gridDim.y + cuda.gridDim.z
    out[4] = cuda.laneid + cuda.warpsize
