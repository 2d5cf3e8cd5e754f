"""A depthwise convolution of NHWC images and the 5/3 wavelet, as loops for Numba."""

import numpy as np
from fourth.lifting import HALF_LINE, LEAST, LINE
from fourth.normalization import SIX, ZERO

from reference_kernels.jit import loops, prange


@loops
def depthwise(images, weights, bias, stride, padding, out):
    _, height, width, channels = images.shape
    n, out_height, out_width, _ = out.shape
    for z in prange(n * out_height):
        image = z // out_height
        row = z % out_height
        top = row * stride - padding
        for column in range(out_width):
            left = column * stride - padding
            totals = out[image, row, column]
            for c in range(channels):
                totals[c] = bias[c]
            for j in range(max(0, -top), min(weights.shape[0], height - top)):
                for i in range(max(0, -left), min(weights.shape[1], width - left)):
                    for c in range(channels):
                        totals[c] += weights[j, i, c] * images[image, top + j, left + i, c]
            for c in range(channels):
                totals[c] = min(max(totals[c], ZERO), SIX)


@loops
def lift(samples, out):
    for row in prange(samples.shape[0]):
        line = np.empty(LINE, np.int32)
        even = np.empty(HALF_LINE + 1, np.int32)
        for i in range(LINE):
            line[i] = samples[row, i]
        length = LINE
        while length > LEAST:
            half = length // 2
            for i in range(half):
                even[i] = line[2 * i]
            even[half] = even[half - 1]
            for i in range(half):
                out[row, half + i] = line[2 * i + 1] - ((even[i] + even[i + 1]) >> 1)
            line[0] = even[0] + ((2 * out[row, half] + 2) >> 2)
            for i in range(1, half):
                line[i] = even[i] + ((out[row, half + i - 1] + out[row, half + i] + 2) >> 2)
            length = half
        for i in range(LEAST):
            out[row, i] = line[i]
