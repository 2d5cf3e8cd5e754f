# weft: sig = "void(int32[::1], int32[:, ::1])", show = ["ir", "ptx"]
"""Barriers that count the threads with a nonzero value, or test for any or all."""

from weft import cuda


@cuda.jit
def barrier_reductions(x, out):
    i = cuda.grid(1)
    value = x[i]
    out[i, 0] = cuda.syncthreads_count(value)
    out[i, 1] = cuda.syncthreads_and(value > 0)
    out[i, 2] = cuda.syncthreads_or(value < 0)
