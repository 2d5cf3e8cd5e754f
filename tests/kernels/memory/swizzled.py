# weft: sig = "void(float16[:, ::1], float16[:, ::1], float32[:, ::1])", targets = ["sm_80", "sm_90"], show = ["ptx"]
"""A warp multiplies matrices in swizzled shared memory, to which asynchronous copies bring them."""

from weft import cuda, float16, float32

T = cuda.mma.tile(32, 16, 16, a=float16, b=float16, c=float32)


@cuda.jit
def swizzled(a, b, c):
    x = cuda.shared.array((32, 32), float16, swizzle=64)
    y = cuda.shared.array((32, 64), float16, swizzle=128)
    xs, ys, a_from, b_from = x.view(cuda.uint32x4), y.view(cuda.uint32x4), a.view(cuda.uint32x4), b.view(cuda.uint32x4)
    t = cuda.threadIdx.x
    for n in range(4):
        cuda.copy_async(xs, (t, n), a_from, (t, n))
    for n in range(8):
        cuda.copy_async(ys, (t, n), b_from, (t, n))
    cuda.copy_commit()
    cuda.copy_wait()
    cuda.syncwarp()
    for j in range(0, 64, 16):
        acc = T.zeros()
        for k in range(0, 32, 16):
            acc = T.mma(T.a(x, 0, k), T.b(y, k, j), acc)
        T.store(c, 0, j, acc)
