# weft: sig = "void(float32[::1])"
"""Arrays whose size in bytes does not fit 64 bits."""

from weft import cuda, float32


@cuda.jit
def absurd_arrays(x):
    rows = cuda.local.array((2**32, 2**32), float32)  # error: [E0306] "does not fit"
    tile = cuda.shared.array((2**32, 2**31), float32)  # error: [E0305] "does not fit"
    rows[0, 0] = x[0]
    tile[0, 0] = x[0]
