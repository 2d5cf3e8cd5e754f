# weft: sig = "void(int64[::1])"
"""A device function that calls itself with a larger tuple each time."""

from weft import cuda


@cuda.jit(device=True)
def collect(found, n):
    if n == 0:
        return len(found)
    return collect((*found, n), n - 1)  # error: [E0213] "collect"


@cuda.jit
def recursion_of_types(x):
    x[0] = collect((), x[1])
