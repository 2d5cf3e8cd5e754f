# weft: sig = "void(int64[::1])"
"""A device function that calls itself on every way."""

from weft import cuda


@cuda.jit(device=True)
def factorial(n):
    if n > 1:
        return n * factorial(n - 1)  # error: [E0213] "factorial"
    return factorial(n + 1)  # error: [E0213] "factorial"


@cuda.jit
def recursion(x):
    x[0] = factorial(x[1])
