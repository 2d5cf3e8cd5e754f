"""Kernels for the C++ program beside this file: ``weft build kernels.py --name heat -o heat``.

`step` is one step of the heat equation on a plate, `histogram` counts temperatures. Their launch rules and output rules
are translated, so that the program passes arrays only. Both compute the same bits on a GPU and on the CPU.
"""

import numpy as np
from weft import cuda

TILE = (32, 8)
BINS = 64


@cuda.jit(
    "void(float32[:, ::1], float32, float32[:, ::1])",
    launch=lambda u: ((-(-u.shape[1] // TILE[0]), -(-u.shape[0] // TILE[1])), TILE),
    out=cuda.like("u"),
    reproducible=True,
)
def step(u, rate, out):
    """Each inner point moves towards the mean of its four neighbors."""
    x, y = cuda.grid(2)
    rows, cols = u.shape
    if x >= cols or y >= rows:
        return
    if x == 0 or y == 0 or x == cols - 1 or y == rows - 1:
        out[y, x] = u[y, x]
        return
    around = u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1]
    out[y, x] = u[y, x] + rate * (around - np.float32(4) * u[y, x])


@cuda.jit(
    "void(float32[:, ::1], float32, int32[::1])",
    launch=lambda u: (min(-(-u.size // 256), 512), 256),
    out=cuda.shaped(lambda: BINS, fill=0),
)
def histogram(u, top, counts):
    """Count temperatures from 0 to ``top`` in equal bins: each block in its shared memory, then all blocks."""
    own = cuda.shared.array(BINS, np.int32)
    t = cuda.threadIdx.x
    if t < BINS:
        own[t] = 0
    cuda.syncthreads()
    cols = u.shape[1]
    for i in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        bin_ = int(u[i // cols, i % cols] / top * np.float32(BINS))
        cuda.atomic.add(own, min(max(bin_, 0), BINS - 1), 1)
    cuda.syncthreads()
    if t < BINS:
        cuda.atomic.add(counts, t, own[t])
