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
def test_a_load_of_the_other_arm_of_a_diagonal():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            total = np.float32(0)
            for k in range(x.shape[1]):
                if k != i:
                    total = x[i, k] - total
                else:
                    total = y[i, k] - 2 * total
            out[i] = total

    x, y = values(9, 16, 40), values(10, 16, 16)
    out, total = np.zeros(16, np.float32), np.zeros(16, np.float32)
    kernel[1, 16](x, AtTheEnd(y), out)
    for k in range(40):
        other = y[:, k % 16] - 2 * total
        total = np.where(np.arange(16) == k, other, x[:, k] - total)
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


def test_a_loaded_limit_of_each_thread_that_is_stored():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < limits[i]:
            total = x[i, k] - total
            limits[i] -= 1
            k += 1
        out[i] = total

    run(kernel, 1, 40, values(14, 40, 80), np.arange(40, dtype=np.int64), np.zeros(40, np.float32))


def test_a_counter_that_an_iteration_advances():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < n:
            total = x[i, k] - total
            if k == 3:
                k += 4
            k += 1
        out[i] = total

    run(kernel, 1, 40, values(15, 40, 48), 37, np.zeros(40, np.float32))


def test_a_counter_that_an_iteration_advances_for_some_threads():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < n:
            total = x[i, k] - total
            if x[i, k] > 3:
                k += 4
            k += 1
        out[i] = total

    run(kernel, 1, 40, values(16, 40, 48), 37, np.zeros(40, np.float32))


def test_an_atomic_operation_after_a_strided_loop():
    @cuda.jit
    def kernel(x, order, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[1]):
            total = x[i, k] - total
        out[i] = total
        out[i + 40] = cuda.atomic.add(order, 0, 1)

    run(kernel, 1, 40, values(17, 40, 48), np.zeros(1, np.int32), np.zeros(80, np.float32))


def test_a_diagonal_that_is_loaded_from_its_own_column():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[1]):
            total = (x[i, k] if k != 5 and y[k] > 0 else y[k]) - total
        out[i] = total

    run(kernel, 1, 40, values(18, 40, 48), values(19, 48), np.zeros(40, np.float32))


# --- masked_exits -----------------------------------------------------------------------------------------------------


def test_a_copy_of_a_counter_that_is_read_before_it_is_assigned():
    @cuda.jit
    def kernel(x, y, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            if k > 0:
                total += np.float32(j) + y[j]
            j = k
            total += x[k, i]
            if total > limits[i]:
                break
        out[i] = total

    run(kernel, 1, 40, np.abs(values(20, 48, 40)), values(21, 48), np.abs(values(22, 40)) * 9, np.zeros(40, np.float32))


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


def test_a_counter_with_two_increments():
    @cuda.jit
    def kernel(x, limits, n, out):
        i = cuda.grid(1)
        total = x[0, i]
        k = 0
        while k < n:
            if total > 3:
                k += 2
            total = (x[0, i] + np.float32(k)) - total
            if total > limits[i]:
                break
            k += 1
        out[i] = total

    run(kernel, 1, 40, np.abs(values(25, 48, 40)), np.abs(values(26, 40)) * 3, 40, np.zeros(40, np.float32))


def test_tests_that_read_what_they_assign():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            total += limits[0]
            if total > 40 + i:
                break
            total += x[k, i]
        out[i] = total

    run(kernel, 1, 40, np.abs(values(27, 48, 40)), np.ones(1, np.float32), np.zeros(40, np.float32))


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


def test_a_test_of_an_element_that_the_iteration_stores():
    @cuda.jit
    def kernel(x, flags, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            if flags[i] > 5:
                break
            if flags[i + 40] > 30:
                break
            flags[i] += 1
            total += x[k, i]
            flags[i + 40] += x[k, i]
        out[i] = total

    run(kernel, 1, 40, np.abs(values(29, 48, 40)), values(30, 80), np.zeros(40, np.float32))


def test_a_named_test_that_is_read_again():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        goes_on = False
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


def test_a_load_for_all_lanes_of_an_address_that_changes():
    @cuda.jit
    def kernel(x, y, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        at = 0
        for k in range(x.shape[0]):
            if total > limits[i]:
                break
            now = at + 1
            at = k + 3
            total += y[now] + x[k, i]
        out[i] = total + at

    run(kernel, 1, 40, np.abs(values(33, 48, 40)), np.abs(values(34, 60)), np.abs(values(35, 40)) * 9, np.zeros(40, np.float32))


def test_an_iteration_that_repeats_before_its_increment():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < x.shape[0]:
            total += np.float32(1)
            if total < limits[i]:
                continue
            total += x[k, i]
            if total > 40:
                break
            k += 1
        out[i] = total

    run(kernel, 1, 40, np.abs(values(36, 48, 40)), np.abs(values(37, 40)), np.zeros(40, np.float32))


def test_a_loop_that_breaks_in_a_branch_of_some_threads():
    @cuda.jit
    def kernel(x, limits, out):
        i = cuda.grid(1)
        if limits[i] > 2:
            total = np.float32(0)
            for k in range(x.shape[0]):
                total += x[k, i]
                if total > limits[i]:
                    break
            out[i] = total

    run(kernel, 1, 40, np.abs(values(38, 48, 40)), np.abs(values(39, 40)) * 9, np.zeros(40, np.float32))


def test_a_load_for_all_lanes_that_some_lanes_make():
    @cuda.jit
    def kernel(x, y, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            if total > limits[i]:
                break
            total += (y[k] if x[k, i] > 3 else np.float32(1)) + x[k, i]
        out[i] = total

    run(kernel, 1, 40, np.abs(values(40, 48, 40)), np.abs(values(41, 60)), np.abs(values(42, 40)) * 9, np.zeros(40, np.float32))


def test_a_load_for_each_lane_in_a_loop_with_breaks():
    @cuda.jit
    def kernel(x, y, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            total += y[i]
            if total > limits[i]:
                break
            value = x[k, i]
            total += value
        out[i] = total

    run(kernel, 1, 40, np.abs(values(43, 48, 40)), np.abs(values(44, 40)), np.abs(values(45, 40)) * 9, np.zeros(40, np.float32))


# --- strip_mine -------------------------------------------------------------------------------------------------------


def test_strided_and_plain_loops():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(i, x.shape[0], 32):
            total = x[k] - total
        for k in range(y.shape[0]):
            total = y[k, i] - total
        out[cuda.blockIdx.x, i] = total

    run(kernel, 2, 32, values(50, 150), values(51, 40, 32), np.zeros((2, 32), np.float32))
    run(kernel, 2, 20, values(50, 150), values(51, 40, 32), np.zeros((2, 32), np.float32))


def test_loops_with_two_strides():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(i, x.shape[0], 32):
            total = x[k] - total
        for k in range(i, y.shape[0], 16):
            total = y[k] - total
        out[cuda.blockIdx.x, i] = total

    run(kernel, 2, 32, values(52, 150), values(53, 70), np.zeros((2, 32), np.float32))
    run(kernel, 2, 20, values(52, 150), values(53, 70), np.zeros((2, 32), np.float32))


def test_strided_loops_and_loops_with_breaks():
    @cuda.jit
    def kernel(x, y, limits, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(i, x.shape[0], 32):
            total += x[k]
        for k in range(y.shape[0]):
            total += y[k, i]
            if total > limits[i]:
                break
        out[cuda.blockIdx.x, i] = total

    args = np.abs(values(54, 150)), np.abs(values(55, 40, 32)), np.abs(values(56, 32)) * 9, np.zeros((2, 32), np.float32)
    run(kernel, 2, 32, *args)
    run(kernel, 2, 20, *args)


def test_strided_loops_and_loops_along_rows():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(i, x.shape[0], 32):
            total = x[k] - total
        for k in range(y.shape[1]):
            total = y[i, k] - total
        out[cuda.blockIdx.x, i] = total

    run(kernel, 2, 32, values(57, 150), values(58, 32, 40), np.zeros((2, 32), np.float32))
    run(kernel, 2, 20, values(57, 150), values(58, 32, 40), np.zeros((2, 32), np.float32))


def test_rows_that_share_loads_and_break():
    @cuda.jit
    def kernel(a, b, limits, out):
        j, i = cuda.grid(2)
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
            if total > limits[i, j]:
                break
        out[i, j] = total

    a, b, limits = np.abs(values(59, 16, 40)), np.abs(values(60, 40, 64)), np.abs(values(61, 16, 64)) * 60
    run(kernel, (2, 2), (32, 8), a, b, limits, np.zeros((16, 64), np.float32))


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


def test_a_loop_that_halves_a_value_from_before_a_barrier():
    @cuda.jit
    def kernel(x, n, out):
        part = cuda.shared.array(128, np.float32)
        i = cuda.threadIdx.x
        s = n
        if x[0, 0] > 100:
            s = n + 1
            out[0] = 3
        part[i] = x[0, i]
        cuda.syncthreads()
        total = part[127 - i]
        while s > 0:
            total = x[s, i] - total
            s //= 2
        out[i] = total

    run(kernel, 1, 128, values(67, 48, 128), 40, np.zeros(128, np.float32))


def test_a_store_of_one_thread_in_each_iteration():
    @cuda.jit
    def kernel(x, sums, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(x.shape[0]):
            total = x[k, i] - total
            if i == 37:
                sums[k] = total
        out[i] = total

    run(kernel, 1, 96, values(68, 40, 96), np.zeros(40, np.float32), np.zeros(96, np.float32))


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


def test_a_guard_of_some_iterations():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(x.shape[0]):
            total = x[k, i] - total
            if i < n + k:
                out[i] += total
        out[i] -= total

    run(kernel, 1, 96, values(70, 40, 96), 30, np.zeros(96, np.float32))


def test_a_loop_after_some_threads_have_returned():
    @cuda.jit
    def kernel(x, out):
        part = cuda.shared.array(96, np.float32)
        i = cuda.threadIdx.x
        part[i] = x[0, i]
        if x[1, i] > 3:
            return
        cuda.syncthreads()
        total = part[i]
        for k in range(x.shape[0]):
            total = x[k, i] - total
        out[i] = total

    run(kernel, 1, 96, values(71, 40, 96), np.zeros(96, np.float32))


def test_a_loop_in_a_loop_that_some_threads_leave_at_a_barrier():
    @cuda.jit
    def kernel(x, n, out):
        part = cuda.shared.array(96, np.float32)
        i = cuda.threadIdx.x
        m = 0
        while m < i % 5 + 1:
            part[i] = x[m, i]
            cuda.syncwarp()
            total = part[i ^ 1]
            for k in range(x.shape[0]):
                total = x[k, i] - total
            out[i] += total
            m += 1

    run(kernel, 1, 96, values(72, 40, 96), 30, np.zeros(96, np.float32))


def test_a_loop_in_a_branch_with_a_barrier():
    @cuda.jit
    def kernel(x, out):
        part = cuda.shared.array(96, np.float32)
        i = cuda.threadIdx.x
        if x[0, i] > 0:
            part[i] = x[1, i]
            cuda.syncwarp()
            total = part[i]
            for k in range(x.shape[0]):
                total = x[k, i] - total
            out[i] = total

    run(kernel, 1, 96, values(73, 40, 96), np.zeros(96, np.float32))


def test_a_condition_of_some_threads_in_a_loop_along_rows():
    @cuda.jit
    def kernel(x, n, y, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[1]):
            total = x[i, k] - total
            if i < n:
                out[i] += total
            if y[0] > 3:
                out[i] += 1
        out[i] -= total

    run(kernel, 1, 96, values(74, 96, 40), 30, values(75, 1), np.zeros(96, np.float32))


def test_a_range_of_threads_without_work_in_each_iteration():
    @cuda.jit
    def kernel(x, n, m, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(x.shape[0]):
            if i < n or i >= m:
                total = x[k, i] - total
        out[i] = total

    run(kernel, 1, 96, values(76, 40, 96), 30, 50, np.zeros(96, np.float32))
    run(kernel, 1, 96, values(76, 40, 96), 30, 20, np.zeros(96, np.float32))


def test_a_range_of_threads_without_work_that_loops():
    @cuda.jit
    def kernel(x, n, m, out):
        i = cuda.threadIdx.x
        if i < n or i >= m:
            total = np.float32(0)
            for k in range(x.shape[0]):
                total = x[k, i] - total
            out[i] = total

    run(kernel, 1, 96, values(77, 40, 96), 30, 50, np.zeros(96, np.float32))


def test_a_guard_in_32_bits_around_a_loop():
    @cuda.jit
    def kernel(x, n, out):
        i = np.int32(cuda.threadIdx.x)
        j = np.int32(i + n)
        if j < 60:
            total = np.float32(0)
            for k in range(x.shape[0]):
                total = x[k, i] - total
            out[i] = total

    x = values(78, 40, 96)
    run(kernel, 1, 96, x, np.int32(30), np.zeros(96, np.float32))
    run(kernel, 1, 96, x, np.int32(2**31 - 40), np.zeros(96, np.float32))
