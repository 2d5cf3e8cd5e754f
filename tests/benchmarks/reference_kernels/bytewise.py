"""Images of bytes as loops for Numba: absolute differences, a blur, Sobel's edges, and the game of life."""

import numpy as np

from reference_kernels.jit import alone, loops, prange


@loops
def sad(image, pattern, out):
    for y in prange(out.shape[0]):
        for x in range(out.shape[1]):
            total = 0
            for j in range(pattern.shape[0]):
                for i in range(pattern.shape[1]):
                    total += abs(np.int32(image[y + j, x + i]) - np.int32(pattern[j, i]))
            out[y, x] = total


@alone
def blurred(image, x, y, c):
    height, width, _ = image.shape
    total = 0
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            total += image[min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1), c]
    return total // 25


@loops
def blur(image, out):
    height, width, channels = image.shape
    for y in prange(height):
        for x in range(width):
            for c in range(channels):
                if 2 <= y < height - 2 and 2 <= x < width - 2:
                    total = 0
                    for dy in range(-2, 3):
                        for dx in range(-2, 3):
                            total += image[y + dy, x + dx, c]
                    out[y, x, c] = total // 25
                else:
                    out[y, x, c] = blurred(image, x, y, c)


@loops
def sobel(image, out):
    height, width = image.shape
    for y in prange(height):
        if y == 0 or y == height - 1:
            out[y] = 0
        else:
            out[y, 0] = 0
            for x in range(1, width - 1):
                nw, n, ne = np.int32(image[y - 1, x - 1]), np.int32(image[y - 1, x]), np.int32(image[y - 1, x + 1])
                w, e = np.int32(image[y, x - 1]), np.int32(image[y, x + 1])
                sw, s, se = np.int32(image[y + 1, x - 1]), np.int32(image[y + 1, x]), np.int32(image[y + 1, x + 1])
                gx = ne + 2 * e + se - nw - 2 * w - sw
                gy = sw + 2 * s + se - nw - 2 * n - ne
                out[y, x] = min(abs(gx) + abs(gy), 255)
            out[y, width - 1] = 0


@alone
def following(cells, north, y, south, west, x, east):
    alive = (
        cells[north, west] + cells[north, x] + cells[north, east]
        + cells[y, west] + cells[y, east]
        + cells[south, west] + cells[south, x] + cells[south, east]
    )  # fmt: skip
    return 1 if alive == 3 or (alive == 2 and cells[y, x] == 1) else 0


@loops
def life(cells, out):
    height, width = cells.shape
    for y in prange(height):
        north = y - 1 if y > 0 else height - 1
        south = y + 1 if y < height - 1 else 0
        out[y, 0] = following(cells, north, y, south, width - 1, 0, 1)
        for x in range(1, width - 1):
            out[y, x] = following(cells, north, y, south, x - 1, x, x + 1)
        out[y, width - 1] = following(cells, north, y, south, width - 2, width - 1, 0)
