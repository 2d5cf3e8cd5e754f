# weft: sig = "void(float32[::1], float32[::1], float32, float32[::1], float32[::1], float32[::1], float32[::1], float32[::1])", adjoint = ["u", "w", "a", "out"], show = ["ir"]
"""Threads add to the same elements: sums over a warp, a copy in shared memory, and a sum over the block for `a`."""

from weft import cuda


@cuda.jit
def filter_adjoint(u, w, a, out):
    i = cuda.grid(1)
    if i < out.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * u[i]
        out[i] = a * s + u[i]
