# weft: sig = "void(float16[:, ::1], float32[:, ::1], int32)"
"""Matrix tiles of a warpgroup that do not exist, and operands in the wrong memory or place."""

from weft import cuda, float16, float32, int8, int32


@cuda.jit
def warpgroup_tiles(a, c, n):
    T = cuda.mma.tile(64, 64, 64, a=float16, b=float16, c=float32, threads=128)
    B = cuda.mma.tile(64, 64, 64, a=int8, b=int8, c=int32, threads=128)
    x = cuda.shared.array((64, 64), float16, swizzle=128)
    y = cuda.shared.array((2, 128, 64), float16, swizzle=128)
    z = cuda.shared.array((64, 64), int8, swizzle=64)
    cuda.mma.tile(32, 8, 16, float16, float16, float32, threads=128)  # error: [E0205] "it is a multiple of 64x8x16"
    cuda.mma.tile(64, 8, 16, float16, float16, float32, threads=64)  # error: [E0205] "32 threads, a warp, or 128"
    cuda.mma.tile(64, 8, 16, float16, float16, float32, threads=n)  # error: [E0210] "compile-time integers"
    cuda.mma.tile(64, 8, 16, "e4m3", "e4m3", float32)  # error: [E0205] "it is a multiple of 16x8x32"
    T.a(a, 0, 0)  # error: [E0205] "takes a swizzled shared array of float16"
    T.a(cuda.shared.array((64, 128), float16, swizzle=128), 0, 0)  # error: [E0205] "rows have 128 bytes"
    T.a(z, 0, 0)  # error: [E0205] "takes a swizzled shared array of float16"
    B.b(z, 0, 0)  # error: [E0205] "elements along `k` are contiguous"
    T.a(x, 8, 0)  # error: [E0209] "does not fit"
    T.a(y[0], 4, 0)  # error: [E0209] "a multiple of 8 rows"
    T.a(y, 0, 8)  # error: [E0209] "a multiple of 16 columns"
    T.a(y, 0, 16)  # error: [E0209] "must begin at a panel"
    T.a(y, 0, 80)  # error: [E0209] "does not fit"
    T.a(x, 0.5, 0)  # error: [E0209] "must be integers"
    T.mma(T.b(x, 0, 0), T.a(x, 0, 0), T.zeros())  # error: [E0205] "does not take"
    T.store(c, 0, 0, T.a(x, 0, 0))  # error: [E0205] "takes a tuple of 32 float32"
    cuda.shared.array((2, 12, 64), float16, swizzle=128)  # error: [E0205] "a multiple of 8 rows"
    y[0, 0:2]  # error: [E0209] "takes integers as indices"
    y.T  # error: [E0207] "has no attribute `T`"
    cuda.set_registers(n)  # error: [E0210] "compile-time integer"
    cuda.set_registers(28)  # error: [E0218] "a multiple of 8 from 24 to 256"
    cuda.set_registers(40)  # error: [E0211] "whose number of registers at the launch is known"
