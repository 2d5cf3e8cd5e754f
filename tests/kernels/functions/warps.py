# weft: sig = "void(float64[::1], int32[:, ::1])", show = ["ir", "ptx", "nvvm"]
"""Warp-level primitives."""

from weft import cuda


@cuda.jit
def warps(x, out):
    i = cuda.grid(1)
    v = x[i]
    for step in (16, 8):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
    x[i] = v
    here = cuda.activemask()
    n = out[i, 0]
    out[i, 0] = cuda.ballot_sync(here, n > 3)
    out[i, 1] = cuda.any_sync(here, n) + cuda.all_sync(here, n) + cuda.eq_sync(here, n)
    out[i, 2] = cuda.match_any_sync(here, v)
    same, is_same = cuda.match_all_sync(here, n)
    out[i, 3] = same if is_same else cuda.reduce_max_sync(here, n)
    out[i, 4] = cuda.shfl_up_sync(here, n, 1, 8) + cuda.shfl_xor_sync(here, n, 3) + cuda.shfl_sync(here, n, 0)
    out[i, 5] = cuda.lanemask_lt() + cuda.elect_sync(here)
