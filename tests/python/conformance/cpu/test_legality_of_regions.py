"""Kernels that a pass of the CPU planner must leave as they are, or must not rewrite in its simplest way: each is wrong
without one condition of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


# --- interchange ------------------------------------------------------------------------------------------------------


def test_a_counter_that_is_read_after_its_loop():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < i + 1:
            total = total * 0.5 + x[i, k]
            k += 1
        out[i] = total + k

    run(kernel, 1, 40, values(36, 40, 48), np.zeros(40, np.float32), rtol=1e-5)


# --- context, broadcasts ----------------------------------------------------------------------------------------------


def test_a_value_that_some_threads_assign_after_a_barrier():
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        value = x[i] * 2
        cuda.syncthreads()
        if x[i] > 0:
            value = y[i]
        cuda.syncthreads()
        out[i] = value

    run(kernel, 1, 40, values(37, 40), values(38, 40), np.zeros(40, np.float32))


def test_an_exit_by_a_value_that_all_threads_have_stored():
    @cuda.jit
    def kernel(out):
        last = cuda.shared.array(1, np.int32)
        i = cuda.grid(1)
        last[0] = 0
        cuda.syncthreads()
        for k in range(9):
            last[0] = k
            if last[0] >= 3:
                break
            out[i] += 1
        cuda.syncthreads()
        out[i] += last[0]

    run(kernel, 1, 40, np.zeros(40, np.int32))


def test_a_value_from_before_the_stores_of_a_loop():
    @cuda.jit
    def kernel(out):
        last = cuda.shared.array(1, np.int32)
        i = cuda.grid(1)
        last[0] = 0
        cuda.syncthreads()
        now = last[0]
        cuda.syncthreads()
        for k in range(9):
            if now >= 3:
                break
            last[0] = k
            now = last[0]
            out[i] += 1
        cuda.syncthreads()
        out[i] += 100 * now

    run(kernel, 1, 40, np.zeros(40, np.int32))


# --- speculate_stores -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1])
def test_a_conditional_store_of_two_threads(at):
    @cuda.jit
    def kernel(x, out):
        most = cuda.shared.array(64, np.int32)
        i = cuda.threadIdx.x
        most[i] = 0
        cuda.syncthreads()
        if x[i] > most[i // 2]:
            most[i // 2] = 7
        cuda.syncthreads()
        out[i] = most[i]

    x = np.zeros(64, np.int32)
    x[at::2] = 9
    run(kernel, 1, 64, x, np.zeros(64, np.int32))


def test_a_conditional_load_of_a_neighbor_after_a_store():
    @cuda.jit
    def kernel(out):
        v = cuda.shared.array(65, np.int32)
        i = cuda.threadIdx.x
        j = i + cuda.blockIdx.x
        v[i] = i
        cuda.syncthreads()
        if v[i] + v[j] > 9:
            v[i] = 70
            v[j] = v[j] + v[i]
        cuda.syncthreads()
        out[i] = v[i]

    run(kernel, 1, 64, np.zeros(64, np.int32))


# --- rematerialize_predicates, nest_conditions ------------------------------------------------------------------------


def test_a_predicate_that_a_loop_assigns():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        known = i > 5
        for k in range(x.shape[0]):
            cuda.syncthreads()
            if known:
                out[i] += x[k, i]
            known = i > 3 * k

    run(kernel, 1, 16, values(43, 6, 16), np.zeros(16, np.float32))


def test_a_predicate_of_a_value_that_a_loop_assigns():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        j = i
        known = j > 5
        for k in range(x.shape[0]):
            cuda.syncthreads()
            if known:
                out[i] += x[k, i]
            j -= 3
        out[i] += j

    run(kernel, 1, 16, values(44, 6, 16), np.zeros(16, np.float32))


def test_a_predicate_of_an_element_that_is_stored():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        known = x[i] > 0
        cuda.syncthreads()
        x[i] = -1
        cuda.syncthreads()
        if known:
            out[i] = 3

    run(kernel, 1, 16, values(45, 16), np.zeros(16, np.float32))


def test_a_conjunction_with_another_arm():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        if i < n and x[i] > 0:
            out[i] = 3
        else:
            out[i] = x[i]

    run(kernel, 1, 16, values(47, 16), 9, np.zeros(16, np.float32))


# --- residue, xor_partner ---------------------------------------------------------------------------------------------


def test_a_remainder_that_differs_between_threads():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if i % 16 == (i + 3) % 18:
            out[i] = 3

    run(kernel, 1, 100, np.zeros(100, np.float32))


def test_a_divisor_that_differs_between_threads():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i % x[i] == 0:
            out[i] = 3

    run(kernel, 1, 100, np.arange(100) % 5 + 2, np.zeros(100, np.float32))


def test_a_mask_of_some_bits():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if i & 21 == 4:
            out[i] = 3

    run(kernel, 1, 100, np.zeros(100, np.float32))


def test_a_remainder_of_a_multiple():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if (i + i) % 16 == 4:
            out[i] = 3

    run(kernel, 1, 100, np.zeros(100, np.float32))


def test_all_remainders_but_one():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if i % 16 != 4:
            out[i] = 3

    run(kernel, 1, 100, np.zeros(100, np.float32))


def test_a_partner_that_changes():
    @cuda.jit
    def kernel(x, j, out):
        v = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        v[i] = x[i]
        cuda.syncthreads()
        p = i ^ j
        if x[i] > 0:
            p = i
        out[i] = v[p] + v[i ^ j]

    run(kernel, 1, 64, values(49, 64), 4, np.zeros(64, np.float32))


# --- privatize, context -----------------------------------------------------------------------------------------------


def test_more_counts_than_a_copy_has():
    @cuda.jit
    def kernel(x, counts):
        i = cuda.grid(1)
        cuda.atomic.add(counts, x[i], 1)

    x = np.arange(0, 40000, 100, dtype=np.int64)
    run(kernel, 4, 100, x, np.zeros(40000, np.int32))


def test_an_array_of_the_thread_in_a_loop_with_barriers():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            last = cuda.local.array(2, np.float32)
            cuda.syncthreads()
            if k == 0:
                last[1] = 1
            last[k % 2] = last[(k + 1) % 2] * 2 + x[k, i]
            out[i] += last[k % 2]

    (out,) = launch(kernel, 1, 40, values(50, 6, 40), np.zeros(40, np.float32))[1:]
    expected, last = np.zeros(40, np.float32), np.ones(40, np.float32)
    for row in values(50, 6, 40):
        last = last * 2 + row
        expected += last
    np.testing.assert_array_equal(out, expected)


# --- strip_mine, masked_exits -----------------------------------------------------------------------------------------


def test_a_value_from_before_a_loop_without_an_iteration():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.threadIdx.x
        last = x[1, i] * 3
        total = np.float32(0)
        cuda.syncthreads()
        for k in range(n):
            total = total * 2 + x[k, i]
            last = x[k, i]
        cuda.syncthreads()
        out[i] = total * 100 + last

    for n in (0, 5):
        run(kernel, 1, 200, values(51, 5, 200), n, np.zeros(200, np.float32))


def test_a_value_that_a_loop_carries_to_its_next_execution():
    @cuda.jit
    def kernel(x, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for _ in range(3):
            cuda.syncthreads()
            for k in range(x.shape[0]):
                total = total * 2 + x[k, i]
                out[i] += total
            cuda.syncthreads()

    run(kernel, 1, 200, values(52, 4, 200), np.zeros(200, np.float32))


def test_a_loop_before_the_exit_of_the_loop_around_it():
    @cuda.jit
    def kernel(x, last, out):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for n in range(5):
            cuda.syncthreads()
            for k in range(x.shape[0]):
                total = total * 2 + x[k, i]
            if n == last:
                break
            cuda.syncthreads()
        out[i] = total

    run(kernel, 1, 200, values(53, 4, 200), 2, np.zeros(200, np.float32))


def test_a_counter_that_stops_for_each_thread():
    @cuda.jit
    def kernel(table, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        k = 0
        while k < table.size:
            if table[k] > limits[i]:
                break
            total += table[k]
            k += 1
        out[i] = total + 1000 * k

    run(kernel, 1, 200, values(54, 30), values(55, 200), np.zeros(200, np.float32))


def test_a_copy_of_a_counter_that_stops_for_each_thread():
    @cuda.jit
    def kernel(table, limits, out):
        i = cuda.grid(1)
        total = np.float32(0)
        j = 70
        for k in range(table.size):
            j = k
            if table[k] > limits[i]:
                break
            total += table[j]
        out[i] = total + 1000 * j

    run(kernel, 1, 200, values(54, 30), values(55, 200), np.zeros(200, np.float32))


# --- privatize, coalesce ----------------------------------------------------------------------------------------------


def test_a_conditional_count_at_a_loaded_index():
    @cuda.jit
    def kernel(flags, at, x, counts):
        i = cuda.grid(1)
        if flags[i] > 0:
            cuda.atomic.add(counts, x[at[i]], 1)

    flags = np.arange(64, dtype=np.int32) % 2
    at = np.where(flags > 0, np.arange(64), 1 << 40)
    run(kernel, 1, 64, flags, at, np.arange(64, dtype=np.uint8) % 7, np.zeros(256, np.int32))


def test_a_conditional_sum_of_loaded_values():
    @cuda.jit
    def kernel(flags, at, x, sums):
        i = cuda.grid(1)
        if flags[i] > 0:
            cuda.atomic.add(sums, 3, x[at[i]])

    flags = np.arange(64, dtype=np.int32) % 2
    at = np.where(flags > 0, np.arange(64), 1 << 40)
    run(kernel, 1, 64, flags, at, np.arange(64, dtype=np.int32) % 7, np.zeros(8, np.int32))


def test_a_conditional_count_beside_private_copies():
    @cuda.jit
    def kernel(x, counts, far, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            if x[i] > 3:
                cuda.atomic.add(counts, 2, 1)
            if x[i] > 100:
                cuda.atomic.add(far, 10_000_000_000, 1)
            if i == 0:
                out[0] = far[1]

    x = values(56, 16000, dtype=np.int32)
    run(kernel, 64, 256, x, np.zeros(8, np.int32), np.arange(8, dtype=np.int32), np.zeros(1, np.int32))


def test_an_array_of_counts_that_is_read():
    @cuda.jit
    def kernel(x, counts, other, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            cuda.atomic.add(counts, x[i], 1)
            if i == 0:
                cuda.atomic.add(other, 3, 5)
                out[0] = other[3]

    x = values(57, 16000, dtype=np.int32) % 8
    run(kernel, 64, 256, x, np.zeros(16, np.int32), np.zeros(16, np.int32), np.zeros(1, np.int32))


def test_a_tile_that_some_threads_leave_out():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        cuda.syncthreads()
        if t >= 40:
            return
        for k in range(t, 20 * 34, 64):
            out[k // 34, k % 34] = x[k // 34, k % 34] + 1

    run(kernel, 1, 64, values(56, 20, 34), np.zeros((20, 34), np.float32))


def test_a_tile_of_another_size_for_each_thread():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        cuda.syncthreads()
        for k in range(t, 20 * 34 - 2 * t, 64):
            out[k // 34, k % 34] = x[k // 34, k % 34] + 1
        cuda.syncthreads()

    run(kernel, 1, 64, values(56, 20, 34), np.zeros((20, 34), np.float32))


# --- form, local_arrays -----------------------------------------------------------------------------------------------


def test_statements_after_a_branch_with_a_return():
    @cuda.jit
    def kernel(x, n, m, out, after):
        i = cuda.grid(1)
        if n > 3:
            if i >= m:
                return
            out[i] = x[i]
            cuda.syncthreads()
            out[i] += 1
        after[i] = 7

    run(kernel, 1, 64, values(57, 64), 5, 30, np.zeros(64, np.float32), np.zeros(64, np.float32))


def test_an_array_of_the_thread_at_a_loaded_index():
    @cuda.jit
    def kernel(x, at, out):
        i = cuda.grid(1)
        own = cuda.local.array(4, np.float32)
        for k in range(4):
            own[k] = 0
        for k in range(x.shape[0]):
            own[0] = own[0] * 2 + x[k, i]
        own[at[i]] += 1
        out[i] = own[0] + 3 * own[at[i]]

    run(kernel, 2, 64, values(60, 5, 128), np.arange(128) % 4, np.zeros(128, np.float32))


# --- steady_state, sink_exit_values -----------------------------------------------------------------------------------


def test_a_clamped_index_that_a_branch_assigns():
    @cuda.jit
    def kernel(x, at, out):
        i = cuda.grid(1)
        j = i
        if at[i] >= 0:
            j = at[i]
        out[i] = x[min(max(j - 1, 0), x.size - 1)] + x[min(max(i - 1, 0), x.size - 1)]

    run(kernel, 1, 100, values(61, 100), np.zeros(100, np.int64), np.zeros(100, np.float32))


def test_a_flag_that_is_set_before_its_loop():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        flag = x[i] > 0
        for k in range(n):
            cuda.syncthreads()
            flag = i >= k * 2
        if flag:
            out[i] = 3

    for n in (0, 9):
        run(kernel, 1, 64, values(63, 64), n, np.zeros(64, np.float32))


def test_a_flag_that_its_loop_reads():
    @cuda.jit
    def kernel(n, out):
        i = cuda.grid(1)
        flag = False
        for k in range(n):
            cuda.syncthreads()
            if flag:
                out[i] += 1
            flag = i >= k * 2
        if flag:
            out[i] += 10

    run(kernel, 1, 64, 9, np.zeros(64, np.float32))


def test_a_flag_of_an_element_that_its_loop_stores():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        flag = False
        for k in range(n):
            cuda.syncthreads()
            flag = x[i] > k
            x[i] -= 5
        if flag:
            out[i] += 10

    run(kernel, 1, 64, values(64, 64), 2, np.zeros(64, np.float32))


def test_a_flag_that_a_branch_of_its_loop_assigns():
    @cuda.jit
    def kernel(x, y, n, out):
        i = cuda.grid(1)
        flag = False
        for k in range(n):
            cuda.syncthreads()
            flag = i >= k * 2
            if x[i] > 0:
                flag = y[i] > 0
        if flag:
            out[i] += 10

    run(kernel, 1, 64, values(65, 64), values(66, 64), 9, np.zeros(64, np.float32))


def test_a_flag_of_an_iteration_that_ends_early():
    @cuda.jit
    def kernel(n, last, out):
        i = cuda.grid(1)
        flag = False
        for k in range(n):
            cuda.syncthreads()
            flag = i < k * 5
            if k == last:
                break
            flag = i >= k * 2
        if flag:
            out[i] += 10

    run(kernel, 1, 64, 9, 4, np.zeros(64, np.float32))
