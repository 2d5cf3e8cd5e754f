# weft: sig = "void(uint32[::1], uint32)", show = ["ptx"]
"""atomic.add on uint32 returns the old value."""

from weft import cuda


@cuda.jit
def add_uint32(out, a):
    out[1] = cuda.atomic.add(out, 0, a)
    cuda.atomic.add(out, 2, 1)
