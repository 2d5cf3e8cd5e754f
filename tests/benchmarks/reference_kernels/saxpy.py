"""saxpy as a loop for Numba."""

from reference_kernels.jit import loops, prange


@loops
def saxpy(a, x, y, out):
    for i in prange(out.size):
        out[i] = a * x[i] + y[i]
