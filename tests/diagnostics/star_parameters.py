# weft: sig = "void(int64[::1])"
"""A kernel has a fixed number of parameters."""

from weft import cuda


@cuda.jit
def star_parameters(x, *rest, **more):  # error: [E0102] "`*rest`"  # error: [E0102] "`**more`"
    x[0] = 1
