# weft: sig = "void(float32[::1], int32)"
"""Returns of a number and of a tuple."""

from weft import cuda


@cuda.jit(device=True)
def both(n):
    if n > 0:
        return 1
    return 1, 2  # error: [E0217] ""


@cuda.jit
def return_types(x, n):
    x[0] = both(n)
