# weft: sig = "void(int64[::1], float32[::1])"
"""An error in a device function names the calls that lead to it, with their types."""

from weft import cuda


@cuda.jit(device=True)
def inner(a, b):
    return a[b]  # error: [E0209] "float32"


@cuda.jit(device=True)
def outer(n, x):
    return inner(n, x) + 1


@cuda.jit(device=True)
def many(n, *values):
    return 0


@cuda.jit
def call_chain(x, y):
    x[0] = outer(x[0], y[0])
    x[1] = outer(x[1], y[1])
    x[2] = many()  # error: [E0206] "many"
