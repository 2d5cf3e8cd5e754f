# weft: sig = "void(int64[::1])", show = ["ir"]
"""A device function that can end its thread returns an additional flag, which its callers test."""

from weft import cuda


@cuda.jit(device=True)
def checked(x):
    assert x != 3
    return 2 * x


@cuda.jit(device=True)
def through(x):
    return checked(x) + 1


@cuda.jit
def ends_thread(out):
    i = cuda.grid(1)
    out[i] = through(i)
