# weft: sig = "void(int8[::1], uint16[::1], boolean[::1])", show = ["ir", "ptx"]
"""One- and two-byte elements; a bool is a byte that is 0 or 1."""

from weft import cuda


@cuda.jit
def byte_types(a, b, c):
    i = cuda.grid(1)
    a[i] = b[i]
    b[i] += 1
    c[i] = not c[i]
