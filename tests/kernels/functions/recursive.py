# weft: sig = "void(int64[::1], int64[::1])", show = ["ir", "ptx"]
"""Mutually recursive functions have no topological order; a parameter that is only passed on is removed."""

from weft import cuda


@cuda.jit(device=True)
def up(x, n):
    if n >= x.size:
        return 0
    return x[n] * 2 + down(x, n // 2 + n + 1) * 3


@cuda.jit(device=True)
def down(x, n):
    if n < 2:
        return 1
    return up(x, n + 1) * 5 - up(x, n + n)


@cuda.jit
def recursive(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = up(x, i)
