"""Loops that run in strips of threads, which the CPU planner must not make, or must not transpose: each kernel is wrong
without one condition of `tests/legality/conditions.txt`. The plans are those for a CPU with masked vectors."""

import numpy as np
import pytest
from harness import run
from host_memory import AtTheEnd
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


# --- transpose --------------------------------------------------------------------------------------------------------


def test_a_store_three_elements_after_the_load():
    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[1] - 3):
            total = x[i, k] - total
            x[i, k + 3] = total

    run(kernel, 1, 16, values(1, 16, 40))


@cuda.jit
def store_across(x, out, rows, m, n, at):
    i = cuda.grid(1)
    if i < rows:
        total = np.float32(0)
        for k in range(m):
            total = (x[i * m + k]) - total
            out[at + k * n + i] = total


@cuda.jit
def store_along_and_load_across(x, y, out, rows, m, n):
    i = cuda.grid(1)
    if i < rows:
        total = np.float32(0)
        for k in range(m):
            total = (x[i * m + k] + y[k * n + i]) - total
            out[i * m + k + 1] = total


@cuda.jit
def store_along_and_across(x, out, other, rows, m, n):
    i = cuda.grid(1)
    if i < rows:
        total = np.float32(0)
        for k in range(m):
            total = (x[i * m + k]) - total
            out[i * m + k + 1] = total
            other[k * n + i] = total * 2


def one_row(kernel, expected, *args):
    """Launches with one row, in which accesses across rows are accesses along it, and checks the first array."""
    kernel[1, 16](*args)
    np.testing.assert_array_equal(args[0], expected)


def test_a_store_across_rows_between_loads_along_rows():
    x = values(2, 60)
    expected, total = x.copy(), np.float32(0)
    for k in range(40):
        total = expected[k] - total
        expected[k + 1] = total
    one_row(store_across, expected, x, x, 1, 40, 1, 1)


def test_a_load_across_rows_between_stores_along_rows():
    x, z = values(3, 60), values(4, 60)
    expected, total = x.copy(), np.float32(0)
    for k in range(40):
        total = expected[k] + z[k] - total
        expected[k + 1] = total
    x_and_z = (z, x, x)
    store_along_and_load_across[1, 16](*x_and_z, 1, 40, 1)
    np.testing.assert_array_equal(x, expected)


def test_a_store_across_rows_between_stores_along_rows():
    x, out = values(5, 60), values(6, 60)
    expected, total = out.copy(), np.float32(0)
    for k in range(40):
        total = x[k] - total
        expected[k + 1] = total
        expected[k] = total * 2
    store_along_and_across[1, 16](x, out, out, 1, 40, 1)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.cpu
def test_a_load_of_a_row_that_is_shorter_than_the_loop():
    @cuda.jit
    def kernel(x, y, lengths, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(y.shape[1]):
            total = y[i, k] - total
            if k < lengths[i]:
                total += x[i, k]
        out[i] = total

    x, y = values(7, 16, 3), values(8, 16, 40)
    out, x_end = np.zeros(16, np.float32), AtTheEnd(x)
    kernel[1, 16](x_end, y, np.full(16, 3, np.int64), out)
    total = np.zeros(16, np.float32)
    for k in range(40):
        total = y[:, k] - total
        if k < 3:
            total += x[:, k]
    np.testing.assert_array_equal(out, total)


@pytest.mark.cpu
def test_a_load_of_the_arm_for_the_diagonal():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            total = np.float32(0)
            for k in range(x.shape[1]):
                total = x[i, k] - total
                if k != i:
                    total += 1
                else:
                    total += y[i, k]
            out[i] = total

    x, y = values(9, 16, 40), values(10, 16, 16)
    out, total = np.zeros(16, np.float32), np.zeros(16, np.float32)
    kernel[1, 16](x, AtTheEnd(y), out)
    for k in range(40):
        total = x[:, k] - total + np.where(np.arange(16) == k, y[:, k % 16], 1)
    np.testing.assert_array_equal(out, total)


def test_a_store_across_rows_of_different_lengths():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(i + 1):
            total = x[i, k] - total
            out[k, i] = total

    run(kernel, 1, 40, values(11, 40, 48), np.zeros((48, 40), np.float32))


def test_a_limit_that_an_iteration_changes():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < n:
            total = x[i, k] - total
            if k == 3:
                n = 9
            k += 1
        out[i] = total

    run(kernel, 1, 40, values(12, 40, 48), 37, np.zeros(40, np.float32))


def test_a_limit_of_each_thread_that_an_iteration_changes():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        total = np.float32(0)
        limit = i + n
        k = 0
        while k < limit:
            total = x[i, k] - total
            if k == 3:
                limit = 9
            k += 1
        out[i] = total

    run(kernel, 1, 40, values(13, 40, 80), 7, np.zeros(40, np.float32))


# --- masked_exits -----------------------------------------------------------------------------------------------------


def test_a_copy_of_a_counter_with_two_values():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            j = k
            if x[k, i] > 3:
                j = 2
            total += x[k, i] + np.float32(j)
            if total > limits[i]:
                break
        out[i] = total

    run(kernel, 1, 40, np.abs(values(23, 48, 40)), np.abs(values(24, 40)) * 9, np.zeros(40, np.float32))


def test_tests_that_add_without_a_load():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = np.float32(i)
        for k in range(x.shape[0]):
            total += np.float32(1)
            if total > 60:
                break
            total += x[k, i]
        out[i] = total

    run(kernel, 1, 40, np.abs(values(28, 48, 40)), np.zeros(40, np.float32))


def test_a_named_test_that_is_read_again():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        goes_on = True
        while True:
            if k < x.shape[0]:
                goes_on = total < limits[i]
            else:
                goes_on = False
            if not goes_on:
                break
            total += x[k, i]
            k += 1
        out[i] = total + (100 if goes_on else 200)

    run(kernel, 1, 40, np.abs(values(31, 48, 40)), np.abs(values(32, 40)) * 9, np.zeros(40, np.float32))


# --- strip_mine -------------------------------------------------------------------------------------------------------


def test_rows_that_share_loads_in_strided_loops():
    @cuda.jit
    def kernel(a, b, out):
        j, i = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for k in range(j, b.shape[0], 32):
            total = a[i] * b[k] - total
        out[i, j] = total

    run(kernel, 1, (32, 8), values(62, 16), values(63, 150), np.zeros((8, 32), np.float32))
    run(kernel, 1, (20, 8), values(62, 16), values(63, 150), np.zeros((8, 32), np.float32))


def test_rows_that_share_loads_and_load_along_rows():
    @cuda.jit
    def kernel(a, b, c, out):
        j, i = cuda.grid(2)
        total = np.float32(0)
        for k in range(a.shape[1]):
            total = a[i, k] * b[k, j] + c[j, k] - total
        out[i, j] = total

    a, b, c = values(64, 16, 40), values(65, 40, 64), values(66, 64, 40)
    run(kernel, (2, 2), (32, 8), a, b, c, np.zeros((16, 64), np.float32))


def test_a_store_of_the_first_lanes_in_each_iteration():
    @cuda.jit
    def kernel(x, sums, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(x.shape[0]):
            total = x[k, i] - total
            if i % 32 == 0:
                sums[k, i // 32] = total
        out[i] = total

    run(kernel, 1, 96, values(69, 40, 96), np.zeros((40, 3), np.float32), np.zeros(96, np.float32))


def test_a_loop_after_some_threads_have_returned():
    @cuda.jit
    def kernel(x, out):
        part = cuda.shared.array(96, np.float32)
        i = cuda.threadIdx.x
        part[i] = x[0, i]
        if x[1, i] > 3:
            return
        cuda.syncthreads()
        total = other = part[i]
        for k in range(x.shape[0]):
            total = x[k, i] - total
            other = total - other
        out[i] = total + other

    run(kernel, 1, 96, values(71, 40, 96), np.zeros(96, np.float32))


@pytest.mark.cpu
def test_iterations_of_some_threads_along_rows():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[1]):
            if i < n:
                total = x[i, k] - total
        out[i] = total

    x = values(81, 30, 40)
    out, total = np.zeros(96, np.float32), np.zeros(30, np.float32)
    kernel[1, 96](AtTheEnd(x), 30, out)
    for k in range(40):
        total = x[:, k] - total
    np.testing.assert_array_equal(out, np.pad(total, (0, 66)))


def test_iterations_of_some_rows_of_threads():
    @cuda.jit
    def kernel(x, n, out):
        i, r = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for k in range(x.shape[2]):
            if r < n:
                total = x[r, i, k] - total
        out[r, i] = total

    run(kernel, 1, (32, 4), values(82, 4, 32, 40), 3, np.zeros((4, 32), np.float32))


def test_a_range_without_work_in_shared_memory():
    @cuda.jit
    def kernel(x, n, m, out):
        part = cuda.shared.array(96, np.float32)
        i = cuda.threadIdx.x
        total = other = np.float32(0)
        part[i] = x[0, i]
        cuda.syncthreads()
        for k in range(x.shape[0]):
            if not (i >= n and i < m):
                total = x[k, i] - total
                other = total - other
        out[i] = total + other + part[95 - i]

    run(kernel, 1, 96, values(83, 40, 96), 30, 50, np.zeros(96, np.float32))


@pytest.mark.parametrize("n", [0, 2**63 - 41])
def test_rows_that_share_loads_under_a_guard_that_wraps(n):
    @cuda.jit
    def kernel(a, b, n, m, out):
        j, i = cuda.grid(2)
        if j + n < m:
            total = np.float32(0)
            for k in range(a.shape[1]):
                total = a[i, k] * b[k, j] - total
            out[i, j] = total

    a, b = values(84, 16, 40), values(85, 40, 64)
    m = 50 if n == 0 else -5
    out = np.zeros((16, 64), np.float32)
    kernel[(2, 2), (32, 8)](a, b, n, m, out)
    total = np.zeros((16, 64), np.float32)
    for k in range(40):
        total = np.outer(a[:, k], b[k]) - total
    runs = np.array([(j + n + 2**63) % 2**64 - 2**63 < m for j in range(64)])
    np.testing.assert_array_equal(out, np.where(runs, total, 0))
