# weft: sig = "void(int32[::1])", assume = ["aligned", "nonneg", "small"], show = ["ptx"]
"""A loop that halves its length is unrolled with its barriers; one without a constant start is not."""

import numpy as np

from weft import cuda


@cuda.jit
def halved_lengths(out):
    line = cuda.shared.array(64, np.int32)
    i = cuda.threadIdx.x
    line[i] = out[i]
    cuda.syncthreads()
    length = 64
    while length > 8:
        length //= 2
        if i < length:
            line[i] += line[i + length]
        cuda.syncthreads()
    out[i] = line[i]
    length = cuda.blockDim.x
    while length > 8:
        length //= 2
        if i < length:
            line[i] += line[i + length]
        cuda.syncthreads()
    out[i] += line[i]
