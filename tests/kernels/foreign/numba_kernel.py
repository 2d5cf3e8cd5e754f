# weft: sig = "void(float32[:], float64[:, ::1], complex64, boolean)", abi = "kernel", show = ["ptx"]
"""A kernel for other programs accepts all parameters that numba-cuda passes, and reads those that it needs."""

from weft import cuda


@cuda.jit(launch_bounds=(128, 2))
def numba_kernel(out, x, scale, on):
    i = cuda.grid(1)
    if i < out.size and on:
        out[i] = x[i, 0] * scale.real
