# weft: sig = "void(uint64[::1], uint64)", show = ["ptx"]
"""atomic.add on uint64 returns the old value."""

from weft import cuda


@cuda.jit
def add_uint64(out, a):
    out[1] = cuda.atomic.add(out, 0, a)
    cuda.atomic.add(out, 2, 1)
