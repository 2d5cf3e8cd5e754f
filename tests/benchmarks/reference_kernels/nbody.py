"""n-body as loops for Numba: accelerations of all pairs."""

import math

from suite.nbody import ONE, SOFTENING, ZERO

from reference_kernels.jit import prange, sums


@sums
def nbody(x, y, z, mass, ax, ay, az):
    for i in prange(x.size):
        sx = ZERO
        sy = ZERO
        sz = ZERO
        for j in range(x.size):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            dz = z[j] - z[i]
            inverse = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            scale = mass[j] * inverse * inverse * inverse
            sx += dx * scale
            sy += dy * scale
            sz += dz * scale
        ax[i] = sx
        ay[i] = sy
        az[i] = sz
