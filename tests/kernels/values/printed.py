# weft: sig = "void(int32[::1], float32, boolean)", show = ["ir", "ptx"]
"""Printing strings, numbers, a bool, a tuple, and an integer in another base."""

from weft import cuda


@cuda.jit
def printed(x, y, flag):
    i = cuda.grid(1)
    print("100%", i, x[i], y, flag, sep="; ")
    print((1, (x[i], y)), f"{x[i]:04x}", "%5.1f" % y, end="")
