# weft: sig = "void(float32[::1])"
"""More local memory than a thread can have, in the kernel and a device function together."""

from weft import cuda, float32


@cuda.jit
def scratch(x):
    more = cuda.local.array(100, float32)
    more[int(x)] = x
    return more[3]


@cuda.jit
def local_too_large(x):
    rows = cuda.local.array((256, 512), float32)  # error: [E0306] "bytes"
    rows[0, 0] = x[0]
    x[0] = rows[0, 0] + scratch(x[1])
