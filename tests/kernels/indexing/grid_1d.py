# weft: sig = "void(float32[::1], float32, float32[::1])", show = ["ir", "llvm", "ptx"]
"""A thread number is never negative: no wrap-around, and 64-bit address arithmetic stays."""

from weft import cuda


@cuda.jit
def grid_1d(x, a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i]
