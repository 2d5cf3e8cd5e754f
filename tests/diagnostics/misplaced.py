# weft: sig = "void(int32[::1])"
"""break outside of a loop."""

from weft import cuda


@cuda.jit
def misplaced(x):
    if x[0] > 0:
        break  # error: [E0104] "`break`"
    continue  # error: [E0104] "`continue`"
