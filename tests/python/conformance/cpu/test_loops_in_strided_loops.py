"""Loops inside strided loops: the CPU interchanges them with the loop over the threads that still have an iteration."""

import math

import numpy as np
import pytest
from weft import cuda

SIZES = [0, 1, 15, 16, 33, 64, 100, 257, 1000]
LAUNCHES = [(1, 1), (1, 37), (3, 16), (2, 64), (5, 128)]


def values(seed, *shape, dtype=np.int64):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@cuda.jit
def sums(a, weights, out, last):
    seen = 0
    code = 7
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        total = a.dtype.type(0)
        for k in range(a.shape[0]):
            total += a[k, i] * weights[k]
            code = k * 3 + i
        out[i] = total
        seen += i
    if cuda.grid(1) < last.shape[0]:
        last[cuda.grid(1), 0] = seen
        last[cuda.grid(1), 1] = code


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("launch", LAUNCHES)
def test_sums_of_columns(dtype, n, launch):
    threads = launch[0] * launch[1]
    a, weights = values(1, 13, n, dtype=dtype), values(2, 13, dtype=dtype)
    out, last = np.full(n, 77, dtype), np.zeros((threads, 2), np.int64)
    sums[launch](a, weights, out, last)
    np.testing.assert_array_equal(out, (a.T.astype(np.int64) @ weights.astype(np.int64)).astype(dtype))
    for t in range(threads):
        mine = range(t, n, threads)
        assert last[t].tolist() == [sum(mine), 36 + mine[-1] if mine else 7]


@cuda.jit
def product(a, b, c):
    for i in range(cuda.grid(1), c.size, cuda.gridsize(1)):
        row = i // c.shape[1]
        column = i % c.shape[1]
        total = 0
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 0, 7), (17, 33, 30), (8, 5, 64)])
@pytest.mark.parametrize("launch", LAUNCHES)
def test_rows_and_columns_by_division(shape, launch):
    rows, inner, columns = shape
    a, b = values(3, rows, inner), values(4, inner, columns)
    c = np.zeros((rows, columns), np.int64)
    product[launch](a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@cuda.jit
def steps_of(start, most, out):
    """Threads leave the inner loop in different iterations."""
    for i in range(cuda.grid(1), start.size, cuda.gridsize(1)):
        n = start[i]
        turns = 0
        while n != 1 and turns < most:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            turns += 1
        for k in range(i % 5):
            turns += k
        out[i] = turns


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("launch", LAUNCHES)
def test_loops_that_threads_leave(n, launch):
    start = np.random.default_rng(5).integers(1, 300, n)
    out = np.zeros(n, np.int64)
    steps_of[launch](start, 60, out)
    expected = []
    for i, value in enumerate(start.tolist()):
        turns = 0
        while value != 1 and turns < 60:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            turns += 1
        expected.append(turns + sum(range(i % 5)))
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def tiles(a, rounds, out):
    """As in tiled kernels: tiles in shared memory, and a block-stride loop."""
    tile = cuda.shared.array(100, np.int64)
    t = cuda.threadIdx.x
    kept = t
    for part in range(rounds):
        i = t
        while i < 100:
            tile[i] = a[part, i]
            i += cuda.blockDim.x
        cuda.syncthreads()
        i = t
        while i < 100:
            for j in range(100):
                out[cuda.blockIdx.x, i] += tile[j] * (i + j) + kept
            kept += 1
            i += cuda.blockDim.x
        cuda.syncthreads()


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("block", [1, 7, 32, 64, 100, 128])
def test_tiles_in_shared_memory(block, rounds):
    a, out = values(6, 3, 100), np.zeros((2, 100), np.int64)
    tiles[2, block](a, rounds, out)
    expected = np.zeros(100, np.int64)
    kept = np.arange(block)
    at = np.arange(100)
    for part in range(rounds):
        for i in range(100):
            expected[i] += (a[part] * (i + at)).sum() + 100 * kept[i % block]
            kept[i % block] += 1
    np.testing.assert_array_equal(out, [expected, expected])


@cuda.jit
def exponentials(a, b, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        total = 0.0
        for j in range(b.size):
            total += math.exp(-a[i] * b[j])
        out[i] = total


@pytest.mark.parametrize("n", SIZES)
def test_functions_of_math(n):
    a, b = np.random.default_rng(7).random((2, n))
    out = np.zeros(n)
    exponentials[2, 48](a, b, out)
    np.testing.assert_allclose(out, np.exp(-a[:, None] * b).sum(1), rtol=1e-12)


@cuda.jit
def again(left, a, out):
    """Each thread repeats everything as often as its own counter requires."""
    t = cuda.threadIdx.x
    while left[t] > 0:
        for i in range(t, out.size, 32):
            total = 0
            for k in range(a.shape[0]):
                total += a[k, i]
            out[i] += total * left[t]
        left[t] -= 1


@pytest.mark.parametrize("n", [1, 31, 32, 33, 95, 200])
def test_in_loops_that_threads_leave(n):
    a, left, out = values(8, 6, n), np.random.default_rng(9).integers(0, 5, 32), np.zeros(n, np.int64)
    times = left * (left + 1) // 2
    again[1, 32](left, a, out)
    np.testing.assert_array_equal(out, a.sum(0) * times[np.arange(n) % 32])


@cuda.jit
def far(ahead, stop, step, out):
    t = cuda.threadIdx.x
    for i in range(ahead + t, stop, step):
        for k in range(20):
            out[t, k] += i % 1000 + k


@pytest.mark.parametrize("threads", [1, 20, 70])
def test_indices_near_the_largest_integer(threads):
    largest = 2**63 - 1
    for ahead, step in ((largest - 75, 16), (largest - 100, 64), (largest - 300, 2**62)):
        out = np.zeros((threads, 20), np.int64)
        far[1, threads](ahead, largest, step, out)
        mine = [range(ahead + t, largest, step) for t in range(threads)]
        expected = [[sum(i % 1000 + k for i in turns) for k in range(20)] for turns in mine]
        np.testing.assert_array_equal(out, expected)


@cuda.jit
def within(a, out):
    """Code that only some threads of an iteration run."""
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        if i < out.size - 5:
            total = 0
            for k in range(a.shape[0]):
                if a[k, i] < 0:
                    continue
                total += a[k, i] * k
            out[i] = total
        if i % 3 == 0:
            for k in range(a.shape[0]):
                out[i] += a[k, i]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("launch", LAUNCHES)
def test_what_some_threads_do(n, launch):
    a, out = values(10, 9, n), np.full(n, 5, np.int64)
    within[launch](a, out)
    expected = (np.maximum(a, 0) * np.arange(9)[:, None]).sum(0)
    expected[max(n - 5, 0) :] = 5
    expected[::3] += a.sum(0)[::3]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def looked_up(values, columns, x, out):
    i = cuda.grid(1)
    if i < out.size:
        total = x.dtype.type(0)
        for k in range(values.shape[0]):
            column = columns[k, i]
            if column >= 0:
                total += values[k, i] * x[column]
            elif column < -1:
                total -= x[column]
        out[i] = total


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("block", [1, 16, 37, 128])
def test_elements_that_others_name(dtype, n, block):
    numbers = np.random.default_rng(11)
    columns = numbers.integers(-n, n, (11, n), dtype=np.int32)
    factors, x, out = values(12, 11, n, dtype=dtype), values(13, n, dtype=dtype), np.zeros(n, dtype)
    looked_up[-(-n // block), block](factors, columns, x, out)
    found = x[columns]
    expected = np.where(columns >= 0, factors * found, np.where(columns < -1, -found, 0)).sum(0)
    np.testing.assert_array_equal(out, expected.astype(dtype))
