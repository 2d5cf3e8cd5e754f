# weft: sig = "void(int64[::1])", show = ["ir", "ptx"]
"""// and % of thread indices are plain division: here a shift and a mask."""

from weft import cuda


@cuda.jit
def floor_division_nonneg(out):
    i = cuda.grid(1)
    out[i] = i // 32 + i % 32
