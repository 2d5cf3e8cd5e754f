# weft: sig = "void(float64[::1])", show = ["ir", "ptx"]
"""A barrier for all threads of the grid."""

from weft import cuda


@cuda.jit
def grid_barrier(x):
    grid = cuda.cg.this_grid()
    i = grid.thread_rank()
    v = x[x.size - 1 - i]
    grid.sync()
    x[i] = v
