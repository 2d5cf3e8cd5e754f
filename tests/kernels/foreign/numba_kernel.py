# weft: sig = "void(float32[:], float64[:, ::1], complex64, boolean)", abi = "kernel", show = ["ptx"]
"""A kernel that others launch takes all that numba-cuda passes, and reads what it needs."""

from weft import cuda


@cuda.jit(launch_bounds=(128, 2))
def numba_kernel(out, x, scale, on):
    i = cuda.grid(1)
    if i < out.size and on:
        out[i] = x[i, 0] * scale.real
