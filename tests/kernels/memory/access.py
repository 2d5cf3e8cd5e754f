# weft: sig = "void(float32[::1], float32[::1], float32[::1], float32[::1])", show = ["ir"]
"""Arrays that are read, written, both, or neither."""

from weft import cuda


@cuda.jit
def access(read, written, both, untouched):
    i = cuda.grid(1)
    if i < untouched.size:
        written[i] = read[i]
        both[i] += 1.0
