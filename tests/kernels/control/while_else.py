# weft: sig = "void(int32[::1], int32)", show = ["ir"]
"""The else block of a loop runs unless break ended the loop."""

from weft import cuda


@cuda.jit
def while_else(out, a):
    while a > 0:
        if a == 5:
            break
        a -= 1
    else:
        out[0] = 1
    out[1] = a
