# weft: sig = "void(float32[:, ::1], float32[::1])", targets = ["sm_80", "sm_90"], show = ["ptx"]
"""Rows go to shared memory by asynchronous copies of 16 bytes, one row ahead."""

from weft import cuda, float32


@cuda.jit
def copy_async(x, out):
    rows = cuda.shared.array((2, 128), float32)
    to, source = rows.view(cuda.float32x4), x.view(cuda.float32x4)
    t = cuda.threadIdx.x
    cuda.copy_async(to, (0, t), source, (0, t))
    cuda.copy_commit()
    total = float32(0)
    for i in range(x.shape[0]):
        if i + 1 < x.shape[0]:
            cuda.copy_async(to, ((i + 1) % 2, t), source, (i + 1, t))
        cuda.copy_commit()
        cuda.copy_wait(1)
        cuda.syncthreads()
        total += rows[i % 2, 127 - t]
        cuda.syncthreads()
    out[t] = total
