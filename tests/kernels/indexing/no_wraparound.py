# weft: sig = "void(float32[::1], int64[::1], int64)", show = ["ir"]
"""The kernel declares that an index is not negative, which the compiler cannot prove."""

from weft import cuda


@cuda.jit(wraparound=False)
def no_wraparound(x, order, n):
    x[n] = x[order[n]]
