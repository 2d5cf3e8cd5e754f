"""FFTs of 256 points and a histogram of points in the plane, as loops for Numba."""

import numpy as np
from numba import get_num_threads
from second.signals import LOG2, POINTS, SIDE

from reference_kernels.jit import loops, prange


@loops
def fft(real, imaginary, cosines, sines, re, im):
    for row in prange(real.shape[0]):
        for i in range(POINTS):
            reversed_bits = 0
            for bit in range(LOG2):
                reversed_bits |= ((i >> bit) & 1) << (LOG2 - 1 - bit)
            re[row, reversed_bits] = real[row, i]
            im[row, reversed_bits] = imaginary[row, i]
        half = 1
        while half < POINTS:
            for start in range(0, POINTS, 2 * half):
                for k in range(half):
                    top = start + k
                    bottom = top + half
                    c = cosines[k * (POINTS // (2 * half))]
                    s = sines[k * (POINTS // (2 * half))]
                    r = re[row, bottom] * c + im[row, bottom] * s
                    t = im[row, bottom] * c - re[row, bottom] * s
                    re[row, bottom] = re[row, top] - r
                    im[row, bottom] = im[row, top] - t
                    re[row, top] += r
                    im[row, top] += t
            half *= 2


@loops
def histogram2d(x, y, scale, bins):
    parts = get_num_threads()
    counts = np.zeros((parts, SIDE, SIDE), np.int32)
    for part in prange(parts):
        for i in range(part * x.size // parts, (part + 1) * x.size // parts):
            column = min(max(int(x[i] * scale), 0), SIDE - 1)
            row = min(max(int(y[i] * scale), 0), SIDE - 1)
            counts[part, row, column] += 1
    for part in range(parts):
        for row in range(SIDE):
            for column in range(SIDE):
                bins[row, column] += counts[part, row, column]
