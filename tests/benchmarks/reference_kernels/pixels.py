"""Grey of a color picture as loops for Numba: planar (CHW) and interleaved (HWC)."""

import numpy as np
from suite.pixels import BLUE, GREEN, HALF, RED

from reference_kernels.jit import loops, prange


@loops
def grey_planar(rgb, out):
    for y in prange(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = np.uint8(RED * rgb[0, y, x] + GREEN * rgb[1, y, x] + BLUE * rgb[2, y, x] + HALF)


@loops
def grey_interleaved(rgb, out):
    for y in prange(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = np.uint8(RED * rgb[y, x, 0] + GREEN * rgb[y, x, 1] + BLUE * rgb[y, x, 2] + HALF)
