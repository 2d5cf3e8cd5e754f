"""Indices that a loop selects, such as that of a minimum, and uses after it. They are 32 bits wide where they fit."""

import numpy as np
import pytest
from harness import run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-99, 100, shape).astype(dtype)


def test_the_index_of_a_minimum():
    @cuda.jit
    def nearest(points, centers, table, found_at, out):
        i = cuda.grid(1)
        if i < points.size:
            best = np.float32(1e30)
            found = -1
            for k in range(centers.size):
                distance = abs(points[i] - centers[k])
                if distance < best:
                    best = distance
                    found = k
            found_at[i] = found
            if found < 0:
                out[i] = 7
                return
            out[i] = table[found] * 2 + centers[found]

    for n in (0, 1, 37):
        x, centers, table = values(1, 300), values(2, n), values(3, max(n, 1))
        run(nearest, 3, 128, x, centers, table, np.zeros(300, np.int64), np.zeros(300, np.float32))


def test_the_index_of_a_minimum_of_some_lanes():
    @cuda.jit
    def nearest(points, out):
        i = cuda.grid(1)
        best = np.float32(1e30)
        found = 5
        for k in range(i % 7, points.size, 3):
            if points[k] < best:
                best = points[k]
                found = k
        out[i] = points[found] + 100 * found

    run(nearest, 2, 96, values(4, 50), np.zeros(192, np.float32))


def test_an_index_that_the_loop_uses():
    @cuda.jit
    def follow(x, out):
        i = cuda.grid(1)
        at = 0
        total = np.float32(0)
        for k in range(x.size):
            if x[k] > x[at]:
                at = k
            total += x[at] * (k + i % 3)
        out[i] = total + at

    run(follow, 2, 64, values(5, 40), np.zeros(128, np.float32))


def test_two_selections_in_nested_loops():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = np.float32(0)
        row = 0
        for r in range(x.shape[0]):
            column = x.shape[1] - 1
            for c in range(x.shape[1]):
                if x[r, c] > x[r, (i + c) % x.shape[1]]:
                    column = c
            total += x[r, column]
            if total > 50:
                row = r
        out[i] = total + x[row, i % x.shape[1]] + 1000 * row

    run(kernel, 2, 64, values(6, 9, 11), np.zeros(128, np.float32))


@pytest.mark.parametrize("large", [2**31, 2**33 + 5, -(2**40)])
def test_values_of_64_bits(large):
    @cuda.jit
    def kernel(x, first, other, out):
        i = cuda.grid(1)
        found = first
        for k in range(x.size):
            if x[k] > x[(k + i) % x.size]:
                found = other
        out[i] = found + i

    run(kernel, 2, 64, values(7, 20), -1, large, np.zeros(128, np.int64))
    run(kernel, 2, 64, values(8, 20), large, 3, np.zeros(128, np.int64))
