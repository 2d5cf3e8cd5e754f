# weft: sig = "void(float16[:, ::1], float32[:, ::1], int32)"
"""Matrix tiles that do not exist, and wrong operands."""

import weft
from weft import cuda, float32


@cuda.jit
def matrix_tiles(a, c, n):
    T = cuda.mma.tile(16, 8, 16, weft.float16, weft.float16, weft.float32)
    x, y = T.a(a, 0, 0), T.b(a, 0, 0)
    cuda.mma.tile(16, 8, 8, weft.float16, weft.float16, weft.float32)  # error: [E0205] "it is a multiple of 16x8x16"
    cuda.mma.tile(16, 8, 8, float32, float32, float32)  # error: [E0205] "multiples of (16, 8, 16, a=float16"
    cuda.mma.tile(16, 8, n, weft.float16, weft.float16, weft.float32)  # error: [E0210] "compile-time integers"
    T.a(c, 0, 0)  # error: [E0205] "takes an array of two dimensions of float16"
    T.mma(y, x, T.zeros())  # error: [E0205] "does not take"
    T.mma(x, y, (1.0, 2.0))  # error: [E0205] "does not take"
    T.store(c, 0, 0, x)  # error: [E0205] "takes a tuple of 4 float32"
    T.coord(4)  # error: [E0209] "accumulator 4 is out of range"
    T.load(a)  # error: [E0207] "load"
