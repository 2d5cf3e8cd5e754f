# weft: sig = "void(float32[::1])"
"""Too much shared memory of the program's own, whatever it is called."""

from weft import cuda, float32


@cuda.jit
def shared_named_coop(x):
    coop_tile = cuda.shared.array((512, 512), float32)  # error: [E0305] "bytes"
    coop_tile[0, 0] = x[0]
    x[0] = coop_tile[0, 0]
