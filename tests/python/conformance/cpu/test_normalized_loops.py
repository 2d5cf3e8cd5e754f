"""Loops whose start differs between threads and whose trip count does not: on the CPU, they count from zero."""

import numpy as np
import pytest
from harness import assert_exact, launch, run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_a_window_of_an_argument(radius):
    @cuda.jit
    def kernel(x, r, out):
        i = cuda.grid(1)
        if i >= r and i < x.size - r:
            total = np.float32(0)
            for k in range(i - r, i + r + 1):
                total += x[k] * (k - i + 1)
            out[i] = total

    run(kernel, 3, 64, values(1, 150), radius, np.zeros(150, np.float32))


@pytest.mark.parametrize("radius", [-2, -1])
def test_an_empty_window(radius):
    @cuda.jit
    def kernel(r, out):
        i = cuda.grid(1)
        total = 0
        for k in range(i - r, i + r + 1):
            total += k + 100
        out[i] = total

    run(kernel, 2, 64, radius, np.zeros(128, np.int64))


def test_a_window_with_borders():
    @cuda.jit
    def kernel(image, out):
        i, j = cuda.grid(2)
        height, width = image.shape
        if i < height and j < width:
            total = np.float32(0)
            for a in range(i - 1, i + 2):
                for b in range(j - 2, j + 3):
                    if 0 <= a < height and 0 <= b < width:
                        total += image[a, b]
            out[i, j] = total

    run(kernel, (3, 3), (16, 16), values(2, 37, 45), np.zeros((37, 45), np.float32))


def test_chunks():
    @cuda.jit
    def kernel(x, chunk, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(i * chunk, (i + 1) * chunk):
            total += x[k]
        out[i] = total

    run(kernel, 2, 32, values(3, 64 * 7), 7, np.zeros(64, np.float32))


@pytest.mark.parametrize("step", [1, 2, 3, 5, 6])
def test_steps(step):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = 0
        for k in range(i, i + 5, step):
            total = total * 3 + x[k] + k
        out[i] = total

    run(kernel, 2, 32, values(4, 69, dtype=np.int64), np.zeros(64, np.int64))


def test_jumps():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = 0
        for k in range(i, i + 6):
            if x[k] == 0:
                continue
            if x[k] > 6:
                break
            total += k * x[k]
        else:
            total += 1000
        out[i] = total

    run(kernel, 2, 64, values(5, 134, dtype=np.int64), np.zeros(128, np.int64))


def test_the_variable_after_the_loop():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        for k in range(i - 2, i + 3):
            out[i] += k
        out[i] = out[i] * 100 + k

    run(kernel, 2, 64, np.zeros(128, np.int64))


def test_a_counter_that_is_read_after_the_loop():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        k = i - 2
        total = 0
        while k < i + 3:
            total += k
            k += 1
        out[i] = total * 1000 + k

    run(kernel, 2, 64, np.zeros(128, np.int64))


def test_an_end_that_changes_in_the_loop():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        end = i + 4
        total = 0
        k = i
        while k < end:
            total += 1
            if x[k] > 3:
                end = i + 2
            k += 1
        out[i] = total

    run(kernel, 2, 64, values(6, 132, dtype=np.int64), np.zeros(128, np.int64))


def test_a_local_that_changes_before_the_end_is_computed():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        at = np.int32(i)
        k = at - 2
        if x[i] > 0:
            at = np.int32(at + 1)
        total = 0
        while k < at + 3:
            total += 1
            k += 1
        out[i] = total

    run(kernel, 2, 64, values(7, 128, dtype=np.int64), np.zeros(128, np.int64))


def test_memory_that_changes_before_the_end_is_computed():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        k = x[i] - 2
        x[i] += 1
        total = 0
        while k < x[i] + 3:
            total += 1
            k += 1
        out[i] = total

    run(kernel, 2, 64, values(8, 128, dtype=np.int32), np.zeros(128, np.int64))


def test_an_end_that_wraps():
    @cuda.jit
    def kernel(base, out):
        i = cuda.grid(1)
        total = 0
        for _ in range(base + i, base + i + 5):
            total += 1
        out[i] = total

    base = np.iinfo(np.int64).max - 20
    start = base + np.arange(32)  # those after the last integer wrap
    with np.errstate(over="ignore"):
        end = start + 5
    expected = np.where(start < end, 5, 0)
    assert 0 < np.count_nonzero(expected) < 32
    assert_exact(launch(kernel, 1, 32, base, np.zeros(32, np.int64))[1], expected)
