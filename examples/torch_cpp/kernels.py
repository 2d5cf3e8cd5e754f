"""RMSNorm as a kernel, with the rules that operators need."""

import math

from weft import cuda
from weft.types import float32


@cuda.jit(
    "void(float32[:, :], float32[::1], float32, float32[:, ::1])",
    launch=lambda x: (x.shape[0], 128),
    out=cuda.like("x"),
)
def rms_norm(x, weight, eps, out):
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    partial = cuda.shared.array(128, float32)
    total = float32(0)
    for k in range(t, x.shape[1], 128):
        total += x[row, k] * x[row, k]
    partial[t] = total
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    scale = float32(1) / math.sqrt(partial[0] / float32(x.shape[1]) + eps)
    for k in range(t, x.shape[1], 128):
        out[row, k] = x[row, k] * scale * weight[k]
