"""Loops whose counters are loaded from memory and may start below zero, loop nests, and magnitudes of differences."""

import numpy as np
import pytest
from harness import run
from weft import cuda

RNG = np.random.default_rng(17)


@cuda.jit
def rows(values, columns, starts, x, y, seen):
    i = cuda.grid(1)
    if i < y.size:
        total = 0
        last = -100
        for k in range(starts[i], starts[i + 1]):
            if values[k] == 13:
                continue
            if values[k] == 17:
                break
            total += values[k] * x[columns[k]]
            last = k
            cuda.atomic.add(seen, k, 1)
        y[i] = total
        y[i] += last


@pytest.mark.parametrize("starts", [[0, 3, 3, 9, 20], [-20, -17, -5, 0, 4], [-3, 5, -5, -2, 20], [7, -7, 7, 0, 0]])
def test_rows_of_sparse_matrices(starts):
    values, columns = RNG.integers(0, 20, (2, 20), dtype=np.int64)
    columns -= 10
    x = RNG.integers(-100, 100, 10)
    for dtype in (np.int32, np.int64):
        given = np.array(starts, dtype)
        run(rows, 1, 8, values, columns.astype(dtype), given, x, np.zeros(4, np.int64), np.zeros(20, np.int64))


@cuda.jit
def windows(image, out, size):
    x, y = cuda.grid(2)
    height, width, channels = image.shape
    if x < width and y < height:
        for c in range(channels):
            total = 0
            for dy in range(-size, size + 1):
                for dx in range(-1, 2):
                    row = min(max(y + dy, 0), height - 1)
                    column = min(max(x + dx, 0), width - 1)
                    total += image[row, column, c] * (dy - dx)
            for s in range(-2, 1):
                total += image[y, x, c - channels] + image[s, s, s]
            out[y, x, c] = total


@pytest.mark.parametrize("size", [0, 1, 3])
def test_windows_of_channels(size):
    image = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
    run(windows, 1, (8, 8), image, np.zeros((5, 7, 3), np.int64), np.int64(size))


@cuda.jit
def deep(x, out):
    i = cuda.grid(1)
    best = 1000
    n = 0
    for a in range(x.shape[0]):
        for b in range(a, x.shape[1]):
            for c in range(2):
                for d in range(-1, 2):
                    n += 1
                    best = min(best, x[a, b - 1 - d] + c * d + i)
    out[i] = best * 1000 + n


def test_deep_nests():
    run(deep, 1, 4, RNG.integers(-50, 50, (4, 6)), np.zeros(4, np.int64))


@cuda.jit
def differences(a, b, out, wide):
    i = cuda.grid(1)
    if i < a.size:
        total = np.int32(7)
        for k in range(a.size):
            total += abs(np.int32(a[i]) - np.int32(b[k]))
        out[i, 0] = total
        out[i, 1] = abs(np.int32(a[i]) - np.int32(b[i])) + abs(np.int32(b[i]) - np.int32(a[i]))
        out[i, 2] = abs(np.int32(a[i]) - 3) * abs(5 - np.int32(b[i]))
        wide[i] = abs(int(a[i]) - int(b[i]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint32])
def test_sizes_of_differences(dtype):
    info = np.iinfo(dtype)
    a, b = RNG.integers(info.min, info.max, (2, 12), dtype=dtype, endpoint=True)
    a[0] = b[1] = info.min
    a[1] = b[0] = info.max
    a[3] = b[3]
    run(differences, 1, 16, a, b, np.zeros((12, 3), np.int64), np.zeros(12, np.int64))
