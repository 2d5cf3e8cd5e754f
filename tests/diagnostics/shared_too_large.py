# weft: sig = "void(float32[::1])"
"""More shared memory than a block can have."""

from weft import cuda, float32


@cuda.jit
def shared_too_large(x):
    tile = cuda.shared.array((512, 512), float32)  # error: [E0305] "bytes"
    tile[0, 0] = x[0]
    x[0] = tile[0, 0]
