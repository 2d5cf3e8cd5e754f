# weft: sig = "void(float16[:, ::1], float16[:, ::1], float32[:, ::1])", targets = ["sm_90a"], show = ["ptx"]
"""Two warpgroups multiply matrices in swizzled shared memory, to which asynchronous copies bring them."""

from weft import cuda, float16, float32

G = cuda.mma.tile(64, 64, 64, a=float16, b=float16, c=float32, threads=128)
PART = cuda.uint32x4


@cuda.jit(launch_bounds=256)
def warpgroup_tiles(a, b, c):
    x = cuda.shared.array((2, 128, 64), float16, swizzle=128)
    y = cuda.shared.array((2, 64, 64), float16, swizzle=128)
    xs, ys, a_from, b_from = x.view(PART), y.view(PART), a.view(PART), b.view(PART)
    t, row = cuda.threadIdx.x, cuda.threadIdx.x // 128 * 64
    cuda.set_registers(240)
    acc = G.zeros()
    for k in range(0, a.shape[1], 64):
        s = k // 64 % 2
        for at in range(t, 1024, 256):
            cuda.copy_async(xs, (s, at // 8, at % 8), a_from, (at // 8, k // 8 + at % 8))
        for at in range(t, 512, 256):
            cuda.copy_async(ys, (s, at // 8, at % 8), b_from, (k + at // 8, at % 8))
        cuda.copy_commit()
        cuda.copy_wait()
        cuda.syncthreads()
        acc = G.mma(G.a(x[s], row, 0), G.b(y[s], 0, 0), acc)
    G.store(c, row, 0, acc)
