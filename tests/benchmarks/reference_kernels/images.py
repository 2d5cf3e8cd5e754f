"""Images of float32 as loops for Numba: a 7x7 convolution, one pass of a separable one, and a rotation."""

import math

import numpy as np
from second.images import FILTER, ONE, RADIUS, WEIGHTS, ZERO

from reference_kernels.jit import alone, loops, prange


@alone
def at_border(image, x, y):
    height, width = image.shape
    total = ZERO
    for j in range(max(0, 3 - y), min(7, height + 3 - y)):
        for i in range(max(0, 3 - x), min(7, width + 3 - x)):
            total += FILTER[j, i] * image[y + j - 3, x + i - 3]
    return total


@loops
def convolution(image, out):
    height, width = image.shape
    for y in prange(height):
        for x in range(width):
            if 3 <= y < height - 3 and 3 <= x < width - 3:
                total = ZERO
                for j in range(7):
                    for i in range(7):
                        total += FILTER[j, i] * image[y + j - 3, x + i - 3]
                out[y, x] = total
            else:
                out[y, x] = at_border(image, x, y)


@loops
def rows_pass(image, out):
    height, width = image.shape
    for y in prange(height):
        for x in range(width):
            total = ZERO
            if RADIUS <= x < width - RADIUS:
                for k in range(2 * RADIUS + 1):
                    total += WEIGHTS[k] * image[y, x + k - RADIUS]
            else:
                for k in range(max(0, RADIUS - x), min(2 * RADIUS + 1, width + RADIUS - x)):
                    total += WEIGHTS[k] * image[y, x + k - RADIUS]
            out[y, x] = total


@loops
def rotate(image, cosine, sine, out):
    height, width = image.shape
    for y in prange(height):
        for x in range(width):
            dx = np.float32(x - width // 2)
            dy = np.float32(y - height // 2)
            sx = cosine * dx - sine * dy + np.float32(width // 2)
            sy = sine * dx + cosine * dy + np.float32(height // 2)
            left = math.floor(sx)
            top = math.floor(sy)
            fx = np.float32(sx - left)
            fy = np.float32(sy - top)
            x0 = min(max(int(left), 0), width - 1)
            y0 = min(max(int(top), 0), height - 1)
            x1 = min(max(int(left) + 1, 0), width - 1)
            y1 = min(max(int(top) + 1, 0), height - 1)
            upper = (ONE - fx) * image[y0, x0] + fx * image[y0, x1]
            lower = (ONE - fx) * image[y1, x0] + fx * image[y1, x1]
            out[y, x] = (ONE - fy) * upper + fy * lower
