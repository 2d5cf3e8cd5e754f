# weft: sig = "void(float32[:, ::1])", show = ["ir"]
"""Two thread indices, guarded by a pair of extents."""

from weft import cuda


@cuda.jit
def grid_2d(out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = 1.0
