# weft: sig = "void(int32[::1])"
"""A misspelt name, and a misspelt attribute of a module."""

from weft import cuda


@cuda.jit
def unknown_name(values):
    i = cuda.gird(1)  # error: [E0207] "gird"
    values[0] = valeus[1]  # error: [E0201] "name `valeus` is not defined"
