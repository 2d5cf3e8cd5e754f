# weft: sig = "void(float32[::1], int64)", show = ["ir"]
"""A kernel may return early."""

from weft import cuda


@cuda.jit
def early_return(out, n):
    i = cuda.grid(1)
    if i >= n:
        return
    out[i] = 1.0
