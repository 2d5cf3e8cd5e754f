# weft: sig = "void(float32[:, ::1], float32[::1])", assume = ["aligned", "disjoint", "nonneg", "small"], show = ["ptx"]
"""A loop that counts through three buffers is unrolled, and each copy of its body has constant addresses."""

import numpy as np

from weft import cuda


@cuda.jit
def ring_of_buffers(x, out):
    row = cuda.shared.array((3, 65), np.float32)
    i = cuda.threadIdx.x
    for k in range(3):
        row[k, i + 1] = x[0, i]
    cuda.syncthreads()
    for step in range(x.shape[0]):
        older = row[(step + 1) % 3, i]
        old = row[(step + 2) % 3, i + 1]
        row[step % 3, i + 1] = older + old * x[step, i]
        cuda.syncthreads()
    out[i] = row[(x.shape[0] - 1) % 3, i + 1]
