# weft: sig = "void(int64[::1], int64, int64)", show = ["ir"]
"""range with one, two and three arguments; a negative step counts down; an unknown step supports both directions."""

from weft import cuda


@cuda.jit
def ranges(out, n, step):
    for i in range(n):
        out[i] = i
    for i in range(2, n):
        out[i] += i
    for i in range(n - 1, -1, -1):
        out[i] += i
    for i in range(0, n, step):
        out[i] += i
