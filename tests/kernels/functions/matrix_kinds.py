# weft: sig = "void(float16[:, ::1], float32[:, ::1], float64[:, ::1], int8[:, ::1], int32[:, ::1])", show = ["ptx"]
"""The types of matrix tiles, from global memory: words where rows are aligned, else elements."""

import weft
from weft import cuda


@cuda.jit
def matrix_kinds(half, single, double, byte, word):
    T = cuda.mma.tile(16, 8, 16, weft.float16, weft.float16, weft.float32)
    T.store(single, 0, 0, T.mma(T.a(half, 0, 0), T.b(half.T, 0, 0), T.zeros()))
    T = cuda.mma.tile(16, 8, 8, "tf32", "tf32", weft.float32)
    T.store(single, 0, 8, T.mma(T.a(single, 0, 0), T.b(single, 0, 0), T.zeros()))
    T = cuda.mma.tile(8, 8, 4, weft.float64, weft.float64, weft.float64)
    T.store(double, 0, 0, T.mma(T.a(double, 0, 0), T.b(double, 0, 0), T.zeros()))
    T = cuda.mma.tile(16, 8, 32, weft.int8, weft.int8, weft.int32)
    T.store(word, 0, 0, T.mma(T.a(byte, 0, 0), T.b(byte.T, 0, 0), T.zeros()))
