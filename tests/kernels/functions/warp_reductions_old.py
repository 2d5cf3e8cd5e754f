# weft: sig = "void(int32[::1])", targets = ["sm_75"], show = ["ptx"]
"""Warp reductions on an SM without the instruction: one shuffle per active lane."""

from weft import cuda


@cuda.jit
def warp_reductions_old(x):
    i = cuda.grid(1)
    x[i] = cuda.reduce_min_sync(0xFFFFFFFF, x[i])
