"""Several small host arrays as arguments: on a GPU they are copied in one transfer."""

from __future__ import annotations

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def mix(a, b, c, d, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i % b.size] * 2
        if i < c.size:
            c[i] += 1
        if i < d.size:
            d[i] = out[i] > 10


def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    return a[:size] + b[np.arange(size) % b.size] * 2, c + 1


@pytest.mark.parametrize("size", [1, 5, 127, 1000, 8192, 8193])
@pytest.mark.parametrize("stream", [False, True])
def test_each_keeps_its_elements(size: int, *, stream: bool) -> None:
    rng = np.random.default_rng(size)
    a, b = rng.random(size), rng.integers(0, 9, max(1, size // 3)).astype(np.int16)
    c, d, out = rng.integers(0, 100, size).astype(np.uint8), np.ones(size // 2, bool), np.full(size, -1.0)
    before = c.copy()
    queue = cuda.stream() if stream else 0
    for _ in range(3):
        mix[-(-size // 128), 128, queue](a, b, c, d, out)
    results, _ = expected(a, b, before, size)
    np.testing.assert_array_equal(out, results)
    np.testing.assert_array_equal(c, before + np.uint8(3))
    np.testing.assert_array_equal(d, results[: d.size] > 10)


def test_with_hints_gaps_views_and_nothing() -> None:
    a, b = np.arange(100.0), np.arange(30, dtype=np.int64)[::3]
    c, d, out = np.arange(200, dtype=np.uint8)[::2], np.zeros(0, bool), np.full(100, -1.0)
    around = c.base.copy()
    mix[1, 128](cuda.In(a), b, cuda.InOut(c), d, cuda.Out(out))
    np.testing.assert_array_equal(out, a + b[np.arange(100) % b.size] * 2)
    np.testing.assert_array_equal(c, around[::2] + 1)
    np.testing.assert_array_equal(c.base[1::2], around[1::2])


def test_arrays_that_share_elements_are_one_memory() -> None:
    memory, other, small = np.arange(64.0), np.ones(4, np.int32), np.zeros(3, bool)

    @cuda.jit
    def shift(x, y, z, w):
        i = cuda.grid(1)
        if i < 32:
            y[i] += x[i] + z[i % 4]
        if i < 3:
            w[i] = True

    before = memory.copy()
    shift[1, 32](memory[:32], memory[32:], other, small)
    shift[1, 32](memory[:32], memory[16:], other, small)
    half = before.copy()
    half[32:] += before[:32] + 1
    # The order of two threads that access the same element is unspecified: compare only elements of one thread.
    np.testing.assert_array_equal(memory[:16], half[:16])
    assert small.all()


def test_read_only_arrays_stay_as_they_are() -> None:
    a, b = np.arange(10.0), np.ones(10, np.int16)
    c, d, out = np.zeros(10, np.uint8), np.zeros(10, bool), np.zeros(10)
    a.flags.writeable = b.flags.writeable = False
    mix[1, 32](a, b, c, d, out)
    np.testing.assert_array_equal(out, a + 2)
