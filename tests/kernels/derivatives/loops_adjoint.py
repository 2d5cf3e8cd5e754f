# weft: sig = "void(float32[:, ::1], float32[::1], float32[::1], float32[:, ::1], float32[::1], float32[::1])", adjoint = ["u", "w", "out"], show = ["ir"]
"""A sum, which runs in the kernel's order, and a recurrence, which runs backward and stores its values."""

import math

from weft import cuda


@cuda.jit
def loops_adjoint(u, w, out):
    for i in range(cuda.grid(1), u.shape[0], cuda.gridsize(1)):
        s = 0.0
        for k in range(w.size):
            s += w[k] * u[i, k]
        v = s
        for k in range(12):
            v = math.sin(v) * w[k]
        if v > 0.5:
            out[i] = v
