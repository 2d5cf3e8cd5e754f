# weft: sig = "void(float32[::1], float32[:, ::1])"
"""Indices that count from the end, of a kernel that has none."""

from weft import cuda

LAST = -1


@cuda.jit(wraparound=False)
def wraparound(x, y):
    x[-1] = 1.0  # error: [E0209] "-1"
    y[0, LAST] = x[-2:][0]  # error: [E0209] "-1"
    cuda.atomic.add(y, (1, -3), 1.0)  # error: [E0209] "-3"
