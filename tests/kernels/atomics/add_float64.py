# weft: sig = "void(float64[::1], float64)", show = ["ptx"]
"""atomic.add on float64 returns the old value."""

from weft import cuda


@cuda.jit
def add_float64(out, a):
    out[1] = cuda.atomic.add(out, 0, a)
    cuda.atomic.add(out, 2, 1)
