# weft: sig = "void(int32[:, :, ::1])", show = ["ir"]
"""Three thread indices in a C array: the strides follow from the extents."""

from weft import cuda


@cuda.jit
def grid_3d(out):
    i, j, k = cuda.grid(3)
    nx, ny, nz = out.shape
    if i < nx and j < ny and k < nz:
        out[i, j, k] = i + j + k
