# weft: sig = "void(int32[::1], int32)", show = ["ir", "ptx", "nvvm"]
"""if, elif, else."""

from weft import cuda


@cuda.jit
def branches(out, a):
    if a > 10:
        out[0] = 1
    elif a > 5:
        out[0] = 2
    else:
        out[0] = 3
