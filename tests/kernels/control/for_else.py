# weft: sig = "void(int32[::1], int32)", show = ["ir"]
"""for with else, continue and break."""

from weft import cuda


@cuda.jit
def for_else(out, n):
    for i in range(n):
        if i % 2:
            continue
        if out[i] == 0:
            break
        out[i] = i
    else:
        out[0] = -1
