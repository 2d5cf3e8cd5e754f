# weft: sig = "void(float32[::1], float32[::1])", show = ["ir"]
"""The same loop written with while: a sum of nonnegative values is an index that needs no wraparound."""

from weft import cuda


@cuda.jit
def grid_stride_while(x, out):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    while i < x.size:
        out[i] = x[i] + 1.0
        i += cuda.blockDim.x * cuda.gridDim.x
