"""Threads that store along their own rows have the results of sequential threads, whichever arrays overlap."""

import math

import numpy as np
import pytest
from host_memory import AtTheEnd, has_driver
from weft import cuda

THREADS = [1, 5, 16, 17, 40]
COLUMNS = [0, 1, 3, 4, 5, 16, 17, 31, 36, 50]
BLOCKS = [1, 37, 128]


def floats(seed, *shape, dtype=np.float32):
    return (np.random.default_rng(seed).random(shape) - 0.5).astype(dtype)


def run(kernel, n, block, *args):
    kernel[-(-n // block) + 1, block](*args)


@cuda.jit
def running(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = x[i, 0] - x[i, 0]
        for k in range(x.shape[1]):
            total += x[i, k]
            out[i, k] = total


@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS[1:])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_running_sums(n, m, block, dtype):
    x, out = floats(1, n, m, dtype=dtype), np.full((n + 2, m), 7, dtype)
    run(running, n, block, x, out)
    np.testing.assert_array_equal(out[:n], np.add.accumulate(x, axis=1))
    np.testing.assert_array_equal(out[n:], 7)


@cuda.jit
def largest_so_far(x, out):
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    most = np.float32(-1000)
    for k in range(x.shape[1]):
        if x[i, k] > most:
            most = np.float32(x[i, k])
        out[i, k] = most


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16, np.bool_])
@pytest.mark.parametrize("m", COLUMNS)
def test_elements_of_every_size(dtype, m):
    n = 45
    x = np.random.default_rng(3).integers(0, 100, (n, m)).astype(dtype)
    out = np.full((n, m + 3), 1, dtype)
    run(largest_so_far, n, 64, x, out)
    np.testing.assert_array_equal(out[:, :m], np.maximum.accumulate(x, axis=1))
    np.testing.assert_array_equal(out[:, m:], 1)


@cuda.jit
def exponentials(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = math.exp(x[i])


def exps(x):
    """A kernel's results, with one element per thread."""
    x = np.ascontiguousarray(x)
    out = np.zeros_like(x)
    run(exponentials, x.size, 64, x.ravel(), out.ravel())
    return out


def in_order(terms):
    zeros = np.zeros((terms.shape[0], 1), terms.dtype)
    return np.add.accumulate(np.hstack([zeros, terms]), axis=1)[:, -1:]


@cuda.jit
def softmax(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        most = x[i, 0]
        for k in range(1, x.shape[1]):
            most = max(most, x[i, k])
        total = most - most
        for k in range(x.shape[1]):
            e = math.exp(x[i, k] - most)
            out[i, k] = e
            total += e
        for k in range(x.shape[1]):
            out[i, k] /= total


@cuda.jit
def softmax_of_what_is_stored(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        most = x[i, 0]
        for k in range(1, x.shape[1]):
            if x[i, k] > most:
                most = x[i, k]
        total = most - most
        for k in range(x.shape[1]):
            out[i, k] = math.exp(x[i, k] - most)
            total += out[i, k]
        for k in range(x.shape[1]):
            out[i, k] = out[i, k] / total


@pytest.mark.parametrize("kernel", [softmax, softmax_of_what_is_stored])
@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS[1:])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_in_place", [False, True])
def test_softmax(kernel, n, m, dtype, is_in_place):
    x = floats(4, n, m, dtype=dtype) * dtype(200)
    terms = exps(x - x.max(axis=1, keepdims=True))
    expected = terms / in_order(terms)
    out = cuda.to_device(x)
    run(kernel, n, 32, out if is_in_place else cuda.to_device(x), out)
    np.testing.assert_array_equal(out.copy_to_host(), expected)


@cuda.jit
def at_distances(x, out, row, first, second, m):
    i = cuda.grid(1)
    if i < x.size // row:
        total = np.float32(0)
        for k in range(m):
            total += x[i * row + first + k]
            out[i * row + second + k] = total * 2


@cuda.jit
def loaded_behind(x, out, row, first, second, m):
    i = cuda.grid(1)
    if i < x.size // row:
        total = np.float32(0)
        for k in range(m):
            out[i * row + second + k] = total * 2 + 1
            total += x[i * row + first + k]


@cuda.jit
def stored_twice(x, out, row, first, second, m):
    i = cuda.grid(1)
    if i < x.size // row:
        total = np.float32(0)
        for k in range(m):
            total += np.float32(1)
            out[i * row + second + k] = total
            x[i * row + first + k] = -total


def by_hand(kernel, x, row, first, second, m):
    expected = x.copy()
    for i in range(x.size // row):
        total = np.float32(0)
        for k in range(m):
            at, to = i * row + first + k, i * row + second + k
            if kernel is at_distances:
                total += expected[at]
                expected[to] = total * np.float32(2)
            elif kernel is loaded_behind:
                expected[to] = total * np.float32(2) + np.float32(1)
                total += expected[at]
            else:
                total += np.float32(1)
                expected[to] = total
                expected[at] = -total
    return expected


@pytest.mark.parametrize("kernel", [at_distances, loaded_behind, stored_twice])
@pytest.mark.parametrize("apart", [0, 1, 2, 7, 8, 14, 15, 16, 17, 23, 24, 40])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("m", [5, 16, 37])
def test_rows_that_overlap(kernel, apart, sign, m):
    n, row = 21, 90
    first, second = (0, apart) if sign > 0 else (apart, 0)
    x = np.ldexp(floats(5, n * row), -20).astype(np.float32)
    array = cuda.to_device(x)
    run(kernel, n, 16, array, array, row, first, second, m)
    np.testing.assert_array_equal(array.copy_to_host(), by_hand(kernel, x, row, first, second, m))


@cuda.jit
def of_two_sizes(x, out, row, m):
    i = cuda.grid(1)
    if i < out.size // row:
        total = np.float64(0)
        for k in range(m):
            total += x[2 * i * row + k]
            out[i * row + k] = total


@pytest.mark.parametrize("m", [3, 16, 30])
def test_one_memory_of_two_types(m):
    n, row = 20, 40
    x = cuda.to_device(floats(6, 2 * n * row))
    out = x.view(np.float64)
    expected = x.copy_to_host()
    for i in range(n):
        total = np.float64(0)
        for k in range(m):
            total += expected[2 * i * row + k]
            expected.view(np.float64)[i * row + k] = total
    run(of_two_sizes, n, 16, x, out, row, m)
    stored = x.copy_to_host().view(np.float64).reshape(n, row)[:, :m]
    np.testing.assert_array_equal(stored, expected.view(np.float64).reshape(n, row)[:, :m])


def of_turns(turns):
    scope = {"cuda": cuda, "np": np, "math": math}
    source = f"""
def kernel(x, counts, out, sums, c):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = np.float32(0)
        n = counts[i]
        for k in range({turns}):
            total += x[i, k]
            out[i, k] = total
        sums[i] = total
"""
    exec(source, scope)
    return cuda.jit(scope["kernel"], source=source)


TURNS = ["i + 1", "i", "i - 9", "c - i", "min(i + c, 50)", "n", "n + c", "i % 7", "n if i % 2 else 3", "3, i", "c, n"]


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("c", [-3, 0, 4])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_turns_that_differ(turns, n, c, dtype):
    c = max(c, 0) if turns.startswith("c,") else c
    m = 60
    counts = np.random.default_rng(7).integers(-5, 50, n).astype(dtype)
    x, out, sums = floats(8, n, m), np.full((n, m), 7, np.float32), np.zeros(n, np.float32)
    run(of_turns(turns), n, 37, x, counts, out, sums, c)
    expected, expected_sums = np.full((n, m), 7, np.float32), np.zeros(n, np.float32)
    for i in range(n):
        total = np.float32(0)
        for k in eval(f"range({turns})", {}, {"i": i, "n": int(counts[i]), "c": c}):
            total += x[i, k]
            expected[i, k] = total
        expected_sums[i] = total
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(sums, expected_sums)


@cuda.jit
def causal(x, v, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        most = np.float32(-np.inf)
        for k in range(i + 1):
            most = max(most, x[i, k])
        total = np.float32(0)
        for k in range(i + 1):
            e = math.exp(x[i, k] - most)
            out[i, k] = e
            total += e * v[k]
        for k in range(i + 1):
            out[i, k] /= total


@pytest.mark.parametrize("n", [1, 16, 17, 50])
@pytest.mark.parametrize("block", BLOCKS)
def test_a_triangle(n, block):
    x, out = floats(9, n, n), np.zeros((n, n), np.float32)
    v = np.ldexp(1.0, np.random.default_rng(10).integers(-2, 3, n)).astype(np.float32)
    run(causal, n, block, x, v, out)
    inside = np.tril(np.ones((n, n), bool))
    most = np.where(inside, x, -np.inf).max(axis=1, keepdims=True)
    terms = np.where(inside, exps((x - most).astype(np.float32)), np.float32(0))
    np.testing.assert_array_equal(out, terms / in_order(terms * v))


@cuda.jit
def behind_a_condition(x, out, c):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = np.float32(0)
        for k in range(x.shape[1]):
            total += x[i, k]
            if k != i and total > c:
                out[i, k] = total


@pytest.mark.parametrize("c", [-100.0, 0.0, 1.0])
def test_stores_behind_a_condition(c):
    n, m = 40, 37
    x, out = floats(11, n, m), np.full((n, m), 7, np.float32)
    run(behind_a_condition, n, 32, x, out, c)
    totals = np.add.accumulate(x, axis=1)
    stored = (np.arange(m) != np.arange(n)[:, None]) & (totals > c)
    np.testing.assert_array_equal(out, np.where(stored, totals, np.float32(7)))


@pytest.fixture
def on_cpu(device):
    if device != "cpu":
        pytest.skip("maps arrays in the process's memory")
    if has_driver():
        pytest.skip("foreign arrays are taken to be a GPU's, beside one")


@cuda.jit
def packed(x, out):
    i = cuda.grid(1)
    if i * (i + 1) // 2 < x.size:
        total = np.float32(0)
        for k in range(i + 1):
            total += x[i * (i + 1) // 2 + k]
            out[i * (i + 1) // 2 + k] = total


@pytest.mark.parametrize("n", THREADS)
def test_nothing_behind_the_end_of_a_packed_triangle(on_cpu, n):
    x = floats(12, n * (n + 1) // 2)
    source, out = AtTheEnd(x), AtTheEnd(np.zeros_like(x))
    run(packed, n, 16, source, out)
    expected = np.concatenate([np.add.accumulate(x[i * (i + 1) // 2 :][: i + 1]) for i in range(n)])
    np.testing.assert_array_equal(out.array, expected)


@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS[1:])
def test_nothing_behind_the_end(on_cpu, n, m):
    x = floats(13, n, m)
    source, out = AtTheEnd(x), AtTheEnd(np.zeros_like(x))
    run(running, n, 16, source, out)
    np.testing.assert_array_equal(out.array, np.add.accumulate(x, axis=1))


def test_no_threads_and_no_rows():
    out = np.full((4, 4), 7, np.float32)
    running[1, 16](np.zeros((0, 4), np.float32), out)
    causal[1, 16](np.zeros((0, 4), np.float32), np.ones(4, np.float32), out)
    np.testing.assert_array_equal(out, 7)
