# weft: sig = "void(float32[::1], float32[::1], float32)", assume = ["disjoint", "small"], show = ["ir", "ptx"]
"""A strided loop that writes to an array disjoint from its inputs is unrolled by four, with all loads first."""

from weft import cuda


@cuda.jit
def strided_writes(x, out, total):
    for i in range(cuda.threadIdx.x, x.size, 256):
        out[i] = x[i] / total
