# weft: sig = "void(int32[::1], int32)", show = ["ir", "ptx"]
"""atomic.add on int32 returns the old value."""

from weft import cuda


@cuda.jit
def add_int32(out, a):
    out[1] = cuda.atomic.add(out, 0, a)
    cuda.atomic.add(out, 2, 1)
