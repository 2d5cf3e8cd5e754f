# weft: sig = "void(bfloat16[:, ::1], bfloat16[:, ::1], float32[:, ::1])", targets = ["sm_80", "sm_90"], show = ["ptx"]
"""A warp multiplies matrices in shared memory: `ldmatrix`, transposed for the right one, and one `mma.sync` a block."""

import weft
from weft import cuda

T = cuda.mma.tile(32, 16, 16, a=weft.bfloat16, b=weft.bfloat16, c=weft.float32)


@cuda.jit
def matrix_tiles(a, b, c):
    x = cuda.shared.array((32, 24), weft.bfloat16)
    y = cuda.shared.array((16, 24), weft.bfloat16)
    lane = cuda.threadIdx.x
    acc = T.zeros()
    for k in range(0, a.shape[1], 16):
        for i in range(32):
            x[i, lane % 16] = a[i, k + lane % 16]
        for i in range(16):
            y[i, lane % 16] = b[k + i, lane % 16]
        cuda.syncthreads()
        acc = T.mma(T.a(x, 0, 0), T.b(y, 0, 0), acc)
        cuda.syncthreads()
    T.store(c, 0, 0, acc)
