# weft: sig = "void(float32[:, ::1], float32[::1])", show = ["ir", "ptx"]
"""Nested loops with an accumulator."""

from weft import cuda


@cuda.jit
def nested_loops(a, out):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j]
    out[0] = total
