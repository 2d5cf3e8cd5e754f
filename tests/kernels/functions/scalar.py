# weft: sig = "void(float32[::1], float32[::1])", show = ["ir"]
"""A device function with types inferred from its call."""

from weft import cuda


@cuda.jit(device=True)
def square(a):
    return a * a


@cuda.jit
def scalar(x, out):
    i = cuda.grid(1)
    out[i] = square(x[i])
