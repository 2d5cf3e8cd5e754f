# weft: sig = "void(float32[::1], int64[::1], int64)", show = ["ir"]
"""An index that may be negative for all that is known, and is not, as the kernel says."""

from weft import cuda


@cuda.jit(wraparound=False)
def no_wraparound(x, order, n):
    x[n] = x[order[n]]
