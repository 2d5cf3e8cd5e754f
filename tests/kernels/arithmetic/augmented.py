# weft: sig = "void(float32[::1], int32)", show = ["ir"]
"""Augmented assignment reads and writes one element, and evaluates its index once."""

from weft import cuda


@cuda.jit
def augmented(out, a):
    i = cuda.grid(1)
    out[i] += a
    out[i] *= 2
    a //= 3
    out[a] -= 1.5
