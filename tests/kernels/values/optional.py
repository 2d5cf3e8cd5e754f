# weft: sig = "void(int64[::1], int64[::1])", show = ["ir"]
"""An optional value is a value and a flag. A tested flag is not tested again; without a test, None ends the thread."""

from weft import cuda


@cuda.jit(device=True)
def find(x, wanted):
    for i in range(x.size):
        if x[i] == wanted:
            return i
    return None


@cuda.jit
def optional(x, out):
    at = find(x, 3)
    if at is None:
        at = out[0]
    out[1] = at
    first = None
    if at > 2:
        first = x[at]
    out[2] = first + 1
