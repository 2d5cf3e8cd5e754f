# weft: sig = "void(float32[::1], float64[::1], float32[::1], float64[::1], float32)", show = ["ptx"]
"""Square roots and divisions are computed in the branches that use them; one used in both branches is computed once."""

import math

from weft import cuda


@cuda.jit
def in_branches(near, roots, x, b, far):
    i = cuda.grid(1)
    if i < x.shape[0]:
        disc = x[i] * x[i] - far
        t = far
        if disc > 0:
            t = x[i] - math.sqrt(disc)
        near[i] = t
        both = math.sqrt(far) + x[i] if disc > 0 else math.sqrt(far) - x[i]
        near[i + x.shape[0]] = both
        root = -1.0
        if b[i] >= 0 and 1.0 / b[i] < far:
            root = (math.sqrt(b[i]) - b[i]) / (2 * b[i])
        roots[i] = root
