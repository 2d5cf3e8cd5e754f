# weft: sig = "void(int32[::1], float32[::1], int32[::1])", show = ["ptx"]
"""A tile reduces integers in one instruction, and scans floats by shuffles; a coalesced group visits its lanes."""

from weft import cuda
from weft.cuda import cg


@cuda.jit
def group_collectives(x, y, out):
    i = cuda.grid(1)
    tile = cg.tiled_partition(cg.this_thread_block(), 8)
    out[i] = cg.reduce(tile, x[i], cg.plus)
    y[i] = cg.exclusive_scan(tile, y[i])
    if x[i] > 0:
        group = cg.coalesced_threads()
        x[i] = cg.inclusive_scan(group, x[i], cg.greater)
