# weft: sig = "void(int64[::1], int64)", show = ["ptx"]
"""atomic.add on int64 returns the old value."""

from weft import cuda


@cuda.jit
def add_int64(out, a):
    out[1] = cuda.atomic.add(out, 0, a)
    cuda.atomic.add(out, 2, 1)
