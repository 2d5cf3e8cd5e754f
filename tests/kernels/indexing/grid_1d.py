# weft: sig = "void(float32[::1], float32, float32[::1])", show = ["ir", "llvm", "ptx", "nvvm", "plan"]
"""A thread index is never negative, so it needs no wraparound; the address arithmetic has 64 bits."""

from weft import cuda


@cuda.jit
def grid_1d(x, a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i]
