"""Two-dimensional grids as loops for Numba: a 5-point stencil and the Mandelbrot set."""

import numpy as np
from suite.grid import CENTER, FOUR, SIDE, ZERO

from reference_kernels.jit import loops, prange


@loops
def stencil(a, out):
    height, width = a.shape
    for y in prange(height):
        if y == 0 or y == height - 1:
            for x in range(width):
                out[y, x] = a[y, x]
        else:
            out[y, 0] = a[y, 0]
            for x in range(1, width - 1):
                out[y, x] = CENTER * a[y, x] + SIDE * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1])
            out[y, width - 1] = a[y, width - 1]


@loops
def mandelbrot(left, top, step, limit, out):
    for row in prange(out.shape[0]):
        for column in range(out.shape[1]):
            cx = left + np.float32(column) * step
            cy = top + np.float32(row) * step
            zx = ZERO
            zy = ZERO
            count = 0
            while count < limit:
                xx = zx * zx
                yy = zy * zy
                if xx + yy > FOUR:
                    break
                xy = zx * zy
                zx = xx - yy + cx
                zy = xy + xy + cy
                count += 1
            out[row, column] = count
