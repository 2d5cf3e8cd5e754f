# weft: sig = "void(int32[::1], float32[::1], int64)", assume = ["disjoint", "small"], show = ["ir"]
"""A test in an `and` or `or` holds where the whole condition decides; a clamped index of an array is not negative."""

from weft import cuda


@cuda.jit
def tested_by_flags(x, out, at):
    i = at
    if i > 0 and x[i - 1] > 0:
        out[i] = out[i - 1]
    k = at - 7
    if k < 0 or x[k] < 0:
        return
    out[k] = 1
    j = at
    if j > 0 and x[0] > 0:
        j -= 1
        out[j] = 2
    j = at - 1
    if j > 0 or x[0] > 0:
        out[j] = 3
    out[min(max(at, 0), out.shape[0] - 1)] = 4
