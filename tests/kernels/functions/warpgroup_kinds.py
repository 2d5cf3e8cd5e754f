# weft: sig = "void(uint8[:, ::1], float32[:, ::1])", targets = ["sm_90a"], show = ["ptx"]
"""Products of a warpgroup: floats of 8 bits, transposed matrices, panels, and a left matrix in registers."""

from weft import cuda, float16, float32, uint8

BYTES = cuda.mma.tile(64, 8, 64, a="e4m3", b="e5m2", c=float32, threads=128)
SCORES = cuda.mma.tile(64, 16, 16, a=float16, b=float16, c=float32, threads=128)
LEFT = cuda.mma.tile(64, 24, 16, a=float16, b=float16, c=float32, threads=128)


@cuda.jit
def warpgroup_kinds(a, c):
    x = cuda.shared.array((64, 64), uint8, swizzle=64)
    y = cuda.shared.array((2, 16, 16), float16, swizzle=32)
    for at in range(cuda.threadIdx.x, 64 * 64, 128):
        x[at // 64, at % 64] = a[at // 64, at % 64]
    cuda.syncthreads()
    BYTES.store(c, 0, 0, BYTES.mma(BYTES.a(x, 0, 0), BYTES.b(x.T, 0, 8), BYTES.zeros()))
    halves = cuda.shared.array((16, 64), float16, swizzle=128)
    scores = SCORES.mma(SCORES.a(halves.T, 0, 0), SCORES.b(y[0], 0, 0), SCORES.zeros())
    LEFT.store(c, 0, 8, LEFT.mma(LEFT.a(scores), LEFT.b(y, 0, 0), LEFT.zeros()))
