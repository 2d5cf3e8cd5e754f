# weft: sig = "void(float64[::1], int64)", show = ["ir"]
"""A variable that is an integer before the loop and a float inside is a float in the loop."""

from weft import cuda


@cuda.jit
def type_join(out, n):
    acc = 0
    for i in range(n):
        acc += 0.5
    out[0] = acc
