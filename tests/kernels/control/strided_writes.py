# weft: sig = "void(float32[::1], float32[::1], float32)", assume = ["disjoint", "small"], show = ["ir", "ptx"]
"""A strided loop whose turns write an array that shares no memory with what they read: the loads of four turns come first."""

from weft import cuda


@cuda.jit
def strided_writes(x, out, total):
    for i in range(cuda.threadIdx.x, x.size, 256):
        out[i] = x[i] / total
