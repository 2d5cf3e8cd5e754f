# weft: sig = "void(int32[::1], int32)", show = ["ir", "ptx"]
"""Reported exceptions: the location of each, the call sites that callers add, and the end of the thread."""

from weft import cuda


@cuda.jit
def checked(x, i):
    if x[i] < 0:
        raise ValueError("negative", 3)
    return x[i]


@cuda.jit(exceptions=True, boundscheck=True)
def raises(x, n):
    i = cuda.grid(1)
    assert n > 0, "no work"
    x[i] = checked(x, i + n)
