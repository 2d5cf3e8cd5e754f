# weft: sig = "void(float32, float32[::1], float32[::1])", show = ["ir", "ptx"]
"""A thread does the work of four adjacent threads; their loads and their stores are vectorized."""

from weft import cuda


@cuda.jit(coarsen=4)
def coarsened(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]
