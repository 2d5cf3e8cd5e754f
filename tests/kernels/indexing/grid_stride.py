# weft: sig = "void(float32[::1], float32[::1])", show = ["ir", "ptx"]
"""A grid-stride loop: the step is unknown but positive, and the counter is never negative."""

from weft import cuda


@cuda.jit
def grid_stride(x, out):
    start = cuda.grid(1)
    for i in range(start, x.size, cuda.gridsize(1)):
        out[i // 2] = x[i] + 1.0
