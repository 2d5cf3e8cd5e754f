"""Between pixels, as loops for Numba: a motion search, an affine map, local binary patterns, and cubic B-splines."""

import math

import numpy as np
from fourth.resampling import BLOCK, CHOICES, CLAMP, HALF, ONE, REACH, REFLECT, WINDOW, WRAP
from fourth.textures import CELL
from fourth.volumes import SIXTH, TWO, TWO_THIRDS, ZERO

from reference_kernels.jit import alone, loops, prange


@alone
def difference(current, window, row, column, down, right):
    total = 0
    for y in range(BLOCK):
        for x in range(BLOCK):
            above = window[row + y, column + x] * (2 - right) + window[row + y, column + x + 1] * right
            below = window[row + y + 1, column + x] * (2 - right) + window[row + y + 1, column + x + 1] * right
            total += abs(current[y, x] - ((above * (2 - down) + below * down + 2) >> 2))
    return total


@loops
def motion(frame, previous, sads, vectors):
    height, width = frame.shape
    columns = width // BLOCK
    for block in prange(sads.shape[0]):
        top = block // columns * BLOCK
        left = block % columns * BLOCK
        current = np.empty((BLOCK, BLOCK), np.int32)
        window = np.empty((WINDOW, WINDOW), np.int32)
        for y in range(BLOCK):
            for x in range(BLOCK):
                current[y, x] = frame[top + y, left + x]
        for y in range(WINDOW):
            for x in range(WINDOW):
                row = min(max(top - REACH + y, 0), height - 1)
                window[y, x] = previous[row, min(max(left - REACH + x, 0), width - 1)]
        best = 0x7FFFFFFF
        for choice in range(CHOICES * CHOICES):
            row = choice // CHOICES
            column = choice % CHOICES
            total = difference(current, window, row // 2, column // 2, row % 2, column % 2)
            sads[block, choice] = total
            best = min(best, total * 512 + choice)
        vectors[block // columns, block % columns, 0] = best % 512 % CHOICES - 2 * REACH
        vectors[block // columns, block % columns, 1] = best % 512 // CHOICES - 2 * REACH


@alone
def source_index(i, n, mode):
    if mode == CLAMP:
        return min(max(i, 0), n - 1)
    if mode == WRAP:
        return i % n
    if mode == REFLECT:
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    return i if 0 <= i < n else -1


@alone
def pixel(image, row, column, channel, background):
    return background if row < 0 or column < 0 else np.float32(image[row, column, channel])


@loops
def affine(image, matrix, mode, background, out):
    height, width, channels = image.shape
    for y in prange(out.shape[0]):
        for x in range(out.shape[1]):
            column = matrix[0, 0] * np.float32(x) + matrix[0, 1] * np.float32(y) + matrix[0, 2]
            row = matrix[1, 0] * np.float32(x) + matrix[1, 1] * np.float32(y) + matrix[1, 2]
            left = int(math.floor(column))  # noqa: RUF046 (a float in Numba)
            top = int(math.floor(row))  # noqa: RUF046 (a float in Numba)
            fx = column - np.float32(left)
            fy = row - np.float32(top)
            x0 = source_index(left, width, mode)
            x1 = source_index(left + 1, width, mode)
            y0 = source_index(top, height, mode)
            y1 = source_index(top + 1, height, mode)
            for c in range(channels):
                above = (ONE - fx) * pixel(image, y0, x0, c, background) + fx * pixel(image, y0, x1, c, background)
                below = (ONE - fx) * pixel(image, y1, x0, c, background) + fx * pixel(image, y1, x1, c, background)
                out[y, x, c] = np.uint8((ONE - fy) * above + fy * below + HALF)


@loops
def patterns(image, codes, histograms):
    height, width = image.shape
    for cell in prange(histograms.shape[0]):
        counts = histograms[cell]
        counts[:] = 0
        for y in range(cell * CELL, min((cell + 1) * CELL, height)):
            upper = image[max(y - 1, 0)]
            here = image[y]
            lower = image[min(y + 1, height - 1)]
            for x in range(width):
                west = max(x - 1, 0)
                east = min(x + 1, width - 1)
                code = (upper[west] >= here[x]) | (upper[x] >= here[x]) << 1 | (upper[east] >= here[x]) << 2
                code |= (here[east] >= here[x]) << 3 | (lower[east] >= here[x]) << 4 | (lower[x] >= here[x]) << 5
                code |= (lower[west] >= here[x]) << 6 | (here[west] >= here[x]) << 7
                codes[y, x] = code
                counts[x // CELL, code] += 1


@alone
def weights(t):
    s = ONE - t
    return (
        SIXTH * s * s * s,
        TWO_THIRDS - HALF * t * t * (TWO - t),
        TWO_THIRDS - HALF * s * s * (TWO - s),
        SIXTH * t * t * t,
    )


@alone
def split(coordinate):
    whole = math.floor(coordinate)
    return int(whole), np.float32(coordinate - whole)


@loops
def spline(volume, affine, out):
    depth, height, width = volume.shape
    for z in prange(out.shape[0]):
        for y in range(out.shape[1]):
            for x in range(out.shape[2]):
                fx, fy, fz = np.float32(x), np.float32(y), np.float32(z)
                x0, tx = split(affine[0, 0] * fx + affine[0, 1] * fy + affine[0, 2] * fz + affine[0, 3])
                y0, ty = split(affine[1, 0] * fx + affine[1, 1] * fy + affine[1, 2] * fz + affine[1, 3])
                z0, tz = split(affine[2, 0] * fx + affine[2, 1] * fy + affine[2, 2] * fz + affine[2, 3])
                wx = weights(tx)
                wy = weights(ty)
                wz = weights(tz)
                total = ZERO
                for k in range(4):
                    plane = min(max(z0 + k - 1, 0), depth - 1)
                    for j in range(4):
                        row = min(max(y0 + j - 1, 0), height - 1)
                        line = ZERO
                        for i in range(4):
                            line += wx[i] * volume[plane, row, min(max(x0 + i - 1, 0), width - 1)]
                        total += wz[k] * wy[j] * line
                out[z, y, x] = total
