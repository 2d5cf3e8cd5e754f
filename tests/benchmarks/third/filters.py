"""Images: filters in shared memory with a halo, running sums, a bilateral filter, a median, thin edges."""

from __future__ import annotations

import math

import numpy as np
from suite.case import blocks, random, random_bytes, sized

from third.forms import given, on_cpu

ZERO, ONE = np.float32(0), np.float32(1)
MASK = np.random.default_rng(240).random((7, 7), dtype=np.float32)
TAPS = np.random.default_rng(241).random(17, dtype=np.float32)
STEPS = 8


def make_convolution(cuda):
    @cuda.jit
    def convolution_shared(image, out):
        mask = cuda.const.array_like(MASK)
        tile = cuda.shared.array((22, 22), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        height, width = image.shape
        row = cuda.blockIdx.y * 16 + ty
        column = cuda.blockIdx.x * 16 + tx
        source_row = row - 3
        source_column = column - 3
        if source_row >= 0 and source_row < height and source_column >= 0 and source_column < width:
            tile[ty, tx] = image[source_row, source_column]
        else:
            tile[ty, tx] = ZERO
        cuda.syncthreads()
        if ty < 16 and tx < 16 and row < height and column < width:
            total = ZERO
            for i in range(7):
                for j in range(7):
                    total += mask[i, j] * tile[ty + i, tx + j]
            out[row, column] = total

    return convolution_shared


def convolution_work(size: str):
    height, width = sized(size, (2048, 2048), (20, 41))
    args = (random(242, height, width), np.empty((height, width), np.float32))
    return given((blocks(width, 16), blocks(height, 16)), (22, 22), args, (1,), (height, width))


def convolution_reference(xp, args):
    height, width = args[0].shape
    padded = xp.pad(args[0].astype(xp.float64), 3)
    return (sum(float(MASK[i, j]) * padded[i : i + height, j : j + width] for i in range(7) for j in range(7)),)


def make_columns(cuda):
    @cuda.jit
    def convolution_columns(image, out):
        taps = cuda.const.array_like(TAPS)
        tile = cuda.shared.array((16, (STEPS + 2) * 8 + 1), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        height = image.shape[0]
        x = cuda.blockIdx.x * 16 + tx
        top = (cuda.blockIdx.y * STEPS - 1) * 8 + ty
        for i in range(1, STEPS + 1):
            tile[tx, ty + i * 8] = image[top + i * 8, x]
        tile[tx, ty] = image[top, x] if top >= 0 else ZERO
        below = top + (STEPS + 1) * 8
        tile[tx, ty + (STEPS + 1) * 8] = image[below, x] if below < height else ZERO
        cuda.syncthreads()
        for i in range(1, STEPS + 1):
            total = ZERO
            for j in range(-8, 9):
                total += taps[8 - j] * tile[tx, ty + i * 8 + j]
            out[top + i * 8, x] = total

    return convolution_columns


def columns_work(size: str):
    height, width = sized(size, (2048, 2048), (128, 48))
    args = (random(243, height, width), np.empty((height, width), np.float32))
    return given((width // 16, height // (STEPS * 8)), (16, 8), args, (1,), (height, width))


def columns_reference(xp, args):
    height = args[0].shape[0]
    padded = xp.pad(args[0].astype(xp.float64), ((8, 8), (0, 0)))
    return (sum(float(TAPS[16 - k]) * padded[k : k + height] for k in range(17)),)


def make_box(cuda):
    @cuda.jit
    def box_columns(image, radius, out):
        x = cuda.grid(1)
        height, width = image.shape
        if x < width:
            scale = ONE / np.float32(2 * radius + 1)
            total = image[0, x] * np.float32(radius)
            for y in range(radius + 1):
                total += image[y, x]
            out[0, x] = total * scale
            for y in range(1, radius + 1):
                total += image[y + radius, x]
                total -= image[0, x]
                out[y, x] = total * scale
            for y in range(radius + 1, height - radius):
                total += image[y + radius, x]
                total -= image[y - radius - 1, x]
                out[y, x] = total * scale
            for y in range(height - radius, height):
                total += image[height - 1, x]
                total -= image[y - radius - 1, x]
                out[y, x] = total * scale

    return box_columns


def box_work(size: str):
    height, width = sized(size, (2048, 2048), (40, 150))
    args = (random(244, height, width), np.int32(7), np.empty((height, width), np.float32))
    return given((blocks(width, 64),), (64,), args, (2,), (height, width))


def box_reference(xp, args):
    image, radius, _ = args
    padded = xp.pad(image.astype(xp.float64), ((int(radius), int(radius)), (0, 0)), mode="edge")
    length = 2 * int(radius) + 1
    return (sum(padded[k : k + image.shape[0]] for k in range(length)) / length,)


def make_bilateral(cuda):
    @cuda.jit
    def bilateral(image, spatial, radius, scale, out):
        x, y = cuda.grid(2)
        height, width = image.shape
        if x < width and y < height:
            center = image[y, x]
            total = ZERO
            weights = ZERO
            for j in range(-radius, radius + 1):
                for i in range(-radius, radius + 1):
                    yy = min(max(y + j, 0), height - 1)
                    xx = min(max(x + i, 0), width - 1)
                    value = image[yy, xx]
                    difference = value - center
                    weight = spatial[j + radius] * spatial[i + radius] * math.exp(-difference * difference * scale)
                    total += weight * value
                    weights += weight
            out[y, x] = total / weights

    return bilateral


def bilateral_work(size: str):
    height, width = sized(size, (384, 384), (20, 41))
    distances = np.arange(-3, 4, dtype=np.float32)
    args = (random(245, height, width), np.exp(-distances * distances / np.float32(8)), np.int32(3), np.float32(8),
            np.empty((height, width), np.float32))  # fmt: skip
    return given((blocks(width, 16), blocks(height, 16)), (16, 16), args, (4,), (height, width))


def bilateral_reference(xp, args):
    image, spatial = args[0].astype(xp.float64), args[1].astype(xp.float64)
    height, width = image.shape
    padded = xp.pad(image, 3, mode="edge")
    total = weights = 0.0
    for j in range(7):
        for i in range(7):
            value = padded[j : j + height, i : i + width]
            weight = spatial[j] * spatial[i] * xp.exp(-((value - image) ** 2) * float(args[3]))
            total, weights = total + weight * value, weights + weight
    return (total / weights,)


def make_median(cuda):
    @cuda.jit(device=True)
    def ordered(v, a, b):
        least = min(v[a], v[b])
        most = max(v[a], v[b])
        v[a] = least
        v[b] = most

    @cuda.jit
    def median(image, out):
        x, y = cuda.grid(2)
        height, width = image.shape
        if x > 0 and y > 0 and x < width - 1 and y < height - 1:
            v = cuda.local.array(9, np.uint8)
            for j in range(3):
                for i in range(3):
                    v[3 * j + i] = image[y + j - 1, x + i - 1]
            ordered(v, 1, 2)
            ordered(v, 4, 5)
            ordered(v, 7, 8)
            ordered(v, 0, 1)
            ordered(v, 3, 4)
            ordered(v, 6, 7)
            ordered(v, 1, 2)
            ordered(v, 4, 5)
            ordered(v, 7, 8)
            ordered(v, 0, 3)
            ordered(v, 5, 8)
            ordered(v, 4, 7)
            ordered(v, 3, 6)
            ordered(v, 1, 4)
            ordered(v, 2, 5)
            ordered(v, 4, 7)
            ordered(v, 4, 2)
            ordered(v, 6, 4)
            ordered(v, 4, 2)
            out[y, x] = v[4]
        elif x < width and y < height:
            out[y, x] = image[y, x]

    return median


def median_work(size: str):
    height, width = sized(size, (4096, 4096), (20, 41))
    args = (random_bytes(246, height, width), np.empty((height, width), np.uint8))
    return given((blocks(width, 16), blocks(height, 16)), (16, 16), args, (1,), (height, width))


def median_reference(xp, args):
    image = args[0]
    height, width = image.shape
    out = image.copy()
    window = [image[j : j + height - 2, i : i + width - 2] for j in range(3) for i in range(3)]
    out[1:-1, 1:-1] = xp.partition(xp.stack(window), 4, axis=0)[4]
    return (out,)


def make_thin(cuda):
    @cuda.jit
    def suppress(magnitude, direction, out):
        x, y = cuda.grid(2)
        height, width = magnitude.shape
        if x > 0 and y > 0 and x < width - 1 and y < height - 1:
            here = magnitude[y, x]
            angle = direction[y, x]
            if angle == 0:
                before = magnitude[y, x - 1]
                behind = magnitude[y, x + 1]
            elif angle == 1:
                before = magnitude[y - 1, x + 1]
                behind = magnitude[y + 1, x - 1]
            elif angle == 2:
                before = magnitude[y - 1, x]
                behind = magnitude[y + 1, x]
            else:
                before = magnitude[y - 1, x - 1]
                behind = magnitude[y + 1, x + 1]
            if here >= before and here >= behind:
                out[y, x] = here
            else:
                out[y, x] = ZERO
        elif x < width and y < height:
            out[y, x] = ZERO

    return suppress


def thin_work(size: str):
    height, width = sized(size, (2048, 2048), (20, 41))
    directions = np.random.default_rng(247).integers(0, 4, (height, width), dtype=np.uint8)
    args = (random(248, height, width), directions, np.empty((height, width), np.float32))
    return given((blocks(width, 16), blocks(height, 16)), (16, 16), args, (2,), (height, width))


def thin_reference(xp, args):
    magnitude, direction, _ = args
    height, width = magnitude.shape

    def moved(j, i):
        return magnitude[1 + j : height - 1 + j, 1 + i : width - 1 + i]

    inner, angle = moved(0, 0), direction[1:-1, 1:-1]
    offsets = ((0, -1), (-1, 1), (-1, 0), (-1, -1))
    before = xp.choose(angle, [moved(j, i) for j, i in offsets])
    behind = xp.choose(angle, [moved(-j, -i) for j, i in offsets])
    out = xp.zeros_like(magnitude)
    out[1:-1, 1:-1] = xp.where((inner >= before) & (inner >= behind), inner, 0)
    return (out,)


CASES = (
    on_cpu("convolution 7x7, tile with halo", make_convolution, convolution_work, convolution_reference),
    on_cpu("convolution of columns, 17 high", make_columns, columns_work, columns_reference),
    on_cpu("box filter, running sums", make_box, box_work, box_reference),
    on_cpu("bilateral filter", make_bilateral, bilateral_work, bilateral_reference),
    on_cpu("median 3x3 of bytes", make_median, median_work, median_reference, tolerance=0.0),
    on_cpu("thin edges after Canny", make_thin, thin_work, thin_reference, tolerance=0.0),
)
