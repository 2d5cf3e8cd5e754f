# weft: sig = "void(float32[::1], float32[::1], int32)", show = ["ptx"]
"""A block loads and stores four contiguous numbers per thread at once, and loads others through shared memory."""

from weft import cuda, float32
from weft.cuda import coop


@cuda.jit(launch_bounds=128)
def coop_load(x, out, valid):
    items = cuda.local.array(4, float32)
    coop.block.load(x, items, algorithm="vectorize")
    coop.block.store(out, items, algorithm="vectorize")
    coop.block.load(x[512:], items, valid, algorithm="transpose")
    coop.block.store(out[512:], items)
