# weft: sig = "void(float32[::1], float32)", show = ["ptx"]
"""atomic.add on float32 returns the old value."""

from weft import cuda


@cuda.jit
def add_float32(out, a):
    out[1] = cuda.atomic.add(out, 0, a)
    cuda.atomic.add(out, 2, 1)
