"""The matrix Q of MRI gridding as loops for Numba."""

import math

import numpy as np
from fourth.radiology import TWO_PI, ZERO

from reference_kernels.jit import loops, prange


@loops
def gridding(samples, phi, x, y, z, q_real, q_imaginary):
    magnitudes = np.empty(phi.shape[0], np.float32)
    for k in range(magnitudes.size):
        magnitudes[k] = phi[k, 0] * phi[k, 0] + phi[k, 1] * phi[k, 1]
    for i in prange(x.size):
        real = ZERO
        imaginary = ZERO
        for k in range(magnitudes.size):
            angle = TWO_PI * (samples[k, 0] * x[i] + samples[k, 1] * y[i] + samples[k, 2] * z[i])
            real += magnitudes[k] * math.cos(angle)
            imaginary += magnitudes[k] * math.sin(angle)
        q_real[i] = real
        q_imaginary[i] = imaginary
