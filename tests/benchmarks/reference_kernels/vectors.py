"""Points and rays as loops for Numba: the nearest center of k-means, rays against spheres, and Julia's set."""

import math

import numpy as np
from second.vectors import FAR, HALF, NEAR, ONE, ZERO

from reference_kernels.jit import loops, prange


@loops
def assign(points, centers, labels):
    for i in prange(labels.size):
        best = FAR
        label = 0
        for c in range(centers.shape[0]):
            distance = ZERO
            for d in range(centers.shape[1]):
                difference = points[d, i] - centers[c, d]
                distance += difference * difference
            if distance < best:
                best = distance
                label = c
        labels[i] = label


@loops
def rays(spheres, nearest):
    height, width = nearest.shape
    for y in prange(height):
        for x in range(width):
            dx = (np.float32(x) + HALF) / np.float32(width) - HALF
            dy = (np.float32(y) + HALF) / np.float32(height) - HALF
            length = math.sqrt(dx * dx + dy * dy + ONE)
            dx /= length
            dy /= length
            dz = ONE / length
            best = FAR
            found = -1
            for s in range(spheres.shape[0]):
                cx = spheres[s, 0]
                cy = spheres[s, 1]
                cz = spheres[s, 2]
                radius = spheres[s, 3]
                b = dx * cx + dy * cy + dz * cz
                disc = b * b - (cx * cx + cy * cy + cz * cz - radius * radius)
                if disc > ZERO:
                    t = b - math.sqrt(disc)
                    if t > NEAR and t < best:
                        best = t
                        found = s
            nearest[y, x] = found


@loops
def julia(step, limit, out):
    left = np.float32(-1.5)
    for row in prange(out.shape[0]):
        for column in range(out.shape[1]):
            x = left + np.float32(column) * step
            y = left + np.float32(row) * step
            count = 0
            while count < limit and x * x + y * y < np.float32(4):
                x, y = x * x - y * y - np.float32(0.8), np.float32(2) * x * y + np.float32(0.156)
                count += 1
            out[row, column] = count
