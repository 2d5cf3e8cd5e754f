# weft: sig = "void(int32[::1])", show = ["ir", "ptx"]
"""The indices of a thread and its block, their extents, and the lane."""

from weft import cuda


@cuda.jit
def special_registers(out):
    out[0] = cuda.threadIdx.x + cuda.threadIdx.y + cuda.threadIdx.z
    out[1] = cuda.blockIdx.x + cuda.blockIdx.y + cuda.blockIdx.z
    out[2] = cuda.blockDim.x + cuda.blockDim.y + cuda.blockDim.z
    out[3] = cuda.gridDim.x + cuda.gridDim.y + cuda.gridDim.z
    out[4] = cuda.laneid + cuda.warpsize
