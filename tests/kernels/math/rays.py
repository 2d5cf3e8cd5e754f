# weft: sig = "void(float32[::1], float32[:, ::1], float32[:, ::1], int32)", show = ["ptx"]
"""The nearest of many spheres hit by rays: in the unrolled loop, the square root is still guarded by its test."""

import math

from weft import cuda


@cuda.jit
def rays(nearest, directions, balls, n_balls):
    i = cuda.grid(1)
    if i < nearest.shape[0]:
        best = nearest[i]
        for k in range(n_balls):
            x = balls[k, 0]
            y = balls[k, 1]
            z = balls[k, 2]
            b = x * directions[i, 0] + y * directions[i, 1] + z * directions[i, 2]
            disc = b * b - (x * x + y * y + z * z - balls[k, 3])
            if disc > 0:
                t = b - math.sqrt(disc)
                if t > 0 and t < best:
                    best = t
        nearest[i] = best
