"""Loops and branches that a pass of the CPU planner must leave as they are, or must not rewrite in its simplest way: each
kernel is wrong without one condition of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


# --- grid-stride loops ------------------------------------------------------------------------------------------------

LARGEST = 2**63 - 1


@cuda.jit
def count_up_to(first, n, out):
    t = cuda.threadIdx.x
    for i in range(first + t, n, 16):
        out[t, i - first] += 1


def test_a_bound_near_the_largest_integer():
    first, n = LARGEST - 200, LARGEST - 20
    out = np.zeros((64, 300), np.int32)
    count_up_to[1, 64](first, n, out)
    expected = np.zeros((64, 300), np.int32)
    for t in range(64):
        expected[t, t : n - first : 16] = 1
    np.testing.assert_array_equal(out, expected)


def test_a_loop_that_continues_without_its_increment():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        while i < x.size:
            if x[i] > 0:
                if x[i] > 5:
                    x[i] -= 6
                    continue
                out[i] += 1
            out[i] += 2
            i += cuda.gridsize(1)

    run(kernel, 2, 16, values(1, 150), np.zeros(150, np.float32))


def test_a_strided_loop_that_some_threads_leave():
    @cuda.jit
    def kernel(x, out):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            if x[i] > 5:
                break
            out[i] += 2

    run(kernel, 2, 16, values(2, 350), np.zeros(350, np.float32))


def test_a_strided_loop_with_a_barrier():
    @cuda.jit
    def kernel(x, out):
        part = cuda.shared.array(16, np.float32)
        t = cuda.threadIdx.x
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            part[t] = x[i]
            cuda.syncthreads()
            out[i] = part[15 - t]
            cuda.syncthreads()

    run(kernel, 2, 16, values(3, 160), np.zeros(160, np.float32))


def test_a_first_index_that_falls_along_x():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        i = 200 + t * -3
        while i < 400:
            out[t] += x[t] + i
            i += 64

    run(kernel, 1, 64, values(4, 64), np.zeros(64, np.float32))


def test_a_loop_that_counts_down_by_a_step_of_the_block():
    @cuda.jit
    def kernel(n, out):
        t = cuda.threadIdx.x
        for i in range(200 + t, n, cuda.blockDim.x + (-40)):
            out[t, i] += 1

    run(kernel, 1, 32, 20, np.zeros((32, 300), np.float32))


def test_a_bound_that_differs_between_threads():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        for i in range(t, t * 9, 32):
            out[t, i] += x[i]

    run(kernel, 1, 32, values(5, 300), np.zeros((32, 300), np.float32))


def test_a_bound_of_each_row():
    @cuda.jit
    def kernel(x, out):
        t, r = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(t, 200 - 40 * r, 32):
            out[r, i] += x[i]

    run(kernel, 1, (32, 4), values(6, 300), np.zeros((4, 300), np.float32))


def test_an_index_of_32_bits():
    @cuda.jit
    def kernel(x, out):
        i = np.int32(cuda.threadIdx.x)
        while i < x.size:
            out[i] += x[i]
            i = np.int32(i + np.int32(32))

    run(kernel, 1, 32, values(7, 300), np.zeros(300, np.float32))


def test_a_bound_that_changes_before_the_loop():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        m = n // 2
        while i < m:
            out[i] += x[i]
            i += cuda.gridsize(1)

    run(kernel, 2, 32, values(8, 300), 250, np.zeros(300, np.float32))


def test_a_strided_loop_in_a_loop_that_threads_leave_one_by_one():
    @cuda.jit
    def kernel(x, out):
        t = cuda.grid(1)
        k = 0
        while k < t % 5:
            for i in range(t, x.size, cuda.gridsize(1)):
                out[i] += x[i] + k
            k += 1

    run(kernel, 2, 32, values(9, 300), np.zeros(300, np.float32))


# --- distribute -------------------------------------------------------------------------------------------------------


def test_a_return_before_a_store_of_one_thread():
    @cuda.jit
    def kernel(x, out, last):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        if part[63 - t] > 3:
            return
        out[t] = part[63 - t]
        if t == 37:
            last[0] = part[0]

    x = np.zeros(64, np.float32)
    x[26] = 5
    run(kernel, 1, 64, x, np.zeros(64, np.float32), np.zeros(1, np.float32))


def test_a_continue_before_a_store_of_one_thread():
    @cuda.jit
    def kernel(x, out, last):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        for k in range(x.shape[0]):
            part[t] = x[k, t]
            cuda.syncthreads()
            value = part[63 - t]
            cuda.syncthreads()
            if value > 3:
                continue
            out[t] += value
            if t == 37:
                last[k] = value

    run(kernel, 1, 64, values(10, 9, 64), np.zeros(64, np.float32), np.zeros(9, np.float32))


def test_two_sums_in_the_order_of_threads():
    @cuda.jit
    def kernel(x, total):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        cuda.atomic.add(total, 0, part[t])
        if t == 3:
            cuda.atomic.add(total, 0, np.float32(-2e8))

    x = np.ones(64, np.float32)
    x[1] = 1e8
    x[5] = 1e8
    run(kernel, 1, 64, x, np.zeros(1, np.float32))


@pytest.mark.cpu
def test_lines_in_the_order_of_threads(capfd):
    @cuda.jit
    def kernel(x):
        part = cuda.shared.array(8, np.int32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        print(t, part[t])
        if t == 3:
            print(100)

    kernel[1, 8](np.arange(8, dtype=np.int32))
    cuda.synchronize()
    lines = capfd.readouterr().out.split("\n")
    assert lines.index("100") == 4


def test_a_sum_of_a_warp_behind_a_condition_of_each_thread():
    @cuda.jit
    def kernel(x, sums, out):
        part = cuda.shared.array(128, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        if t < x.size - 5 and part[t] > 0:
            base = np.float32(0)
            for w in range(t // 32):
                base += sums[w]
            out[t] = base + part[t]

    run(kernel, 1, 128, values(11, 128), values(12, 4), np.zeros(128, np.float32))


def test_a_sum_of_a_warp_behind_a_mask():
    @cuda.jit
    def kernel(x, sums, out):
        part = cuda.shared.array(128, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        if part[t] > 0:
            cuda.syncwarp()
            base = np.float32(0)
            for w in range(t // 32):
                base += sums[w]
            out[t] = base + part[t]

    run(kernel, 1, 128, values(13, 128), values(14, 4), np.zeros(128, np.float32))


def test_a_last_branch_that_reads_a_value():
    @cuda.jit
    def kernel(x, n, out):
        part = cuda.shared.array(128, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        value = part[127 - t] * 2
        if t < n:
            out[t] = value

    run(kernel, 1, 128, values(15, 128), 100, np.zeros(128, np.float32))


# --- speculate_stores -------------------------------------------------------------------------------------------------


def test_a_store_that_other_threads_do_not_make():
    @cuda.jit
    def kernel(out):
        v = cuda.shared.array(16, np.int32)
        t = cuda.threadIdx.x
        if t < 1:
            v[t * 65536] = 7
        cuda.syncthreads()
        out[t] = v[0]

    run(kernel, 1, 64, np.zeros(64, np.int32))


def test_two_stores_of_an_element():
    @cuda.jit
    def kernel(x, out):
        v = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        v[t] = x[t]
        cuda.syncthreads()
        if v[t] > 0:
            v[t] = 5
            v[t] = 7
        cuda.syncthreads()
        out[t] = v[63 - t]

    run(kernel, 1, 64, values(16, 64, dtype=np.int32), np.zeros(64, np.int32))


def test_an_element_whose_index_a_branch_changes():
    @cuda.jit
    def kernel(x, n, out):
        v = cuda.shared.array(80, np.int32)
        t = cuda.threadIdx.x
        v[t] = x[t]
        cuda.syncthreads()
        s = n
        total = 0
        if n > 3:
            s = n + 7
            v[t + s] = v[t + s] + 1
        else:
            total = v[t + s]
        cuda.syncthreads()
        out[t] = v[t] + total + s

    run(kernel, 1, 80, values(17, 80, dtype=np.int32), 0, np.zeros(80, np.int32))


def test_stores_in_two_orders():
    @cuda.jit
    def kernel(x, out):
        v = cuda.shared.array(65, np.int32)
        t = cuda.threadIdx.x
        j = t + cuda.blockIdx.x
        v[t] = x[t]
        cuda.syncthreads()
        if v[t] + v[j] > 0:
            v[t] = 5
            v[j] = 6
        else:
            v[j] = 7
            v[t] = 8
        cuda.syncthreads()
        out[t] = v[63 - t]

    run(kernel, 1, 64, values(18, 64, dtype=np.int32), np.zeros(64, np.int32))


def test_a_load_in_a_branch_from_an_unknown_element():
    @cuda.jit
    def kernel(x, at, out):
        v = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        v[t] = x[t]
        cuda.syncthreads()
        if v[t] > 0:
            v[t] = x[at[t]] + v[at[t]]
        cuda.syncthreads()
        out[t] = v[63 - t]

    run(kernel, 1, 64, values(19, 64, dtype=np.int32), np.arange(64), np.zeros(64, np.int32))


def test_elements_that_are_the_same_for_every_fourth_thread():
    @cuda.jit
    def kernel(x, out):
        v = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        v[t] = 0
        cuda.syncthreads()
        if t % 4 == 0:
            if x[t] > v[t << 62]:
                v[t << 62] = 7
        cuda.syncthreads()
        out[t] = v[0]

    x = np.zeros(64, np.int32)
    x[4] = 9
    run(kernel, 1, 64, x, np.zeros(64, np.int32))


# --- coalesce ---------------------------------------------------------------------------------------------------------


def test_a_tile_that_begins_at_the_same_cell_for_a_row_of_threads():
    @cuda.jit
    def kernel(x, n, out):
        tile = cuda.shared.array(400, np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        for k in range(tx + ty * 16, 400, 64):
            tile[k] = -1
        cuda.syncthreads()
        for k in range(ty * cuda.blockDim.x, n, cuda.blockDim.x * cuda.blockDim.y):
            row = k // 20
            column = k % 20
            tile[k] = x[row, column]
        cuda.syncthreads()
        for k in range(tx + ty * 16, 400, 64):
            out[k] = tile[k]

    run(kernel, 1, (16, 4), values(20, 20, 20), 380, np.zeros(400, np.float32))


def test_a_tile_with_an_index_of_two_values():
    @cuda.jit
    def kernel(x, n, out):
        tile = cuda.shared.array(400, np.float32)
        marks = cuda.shared.array(400, np.float32)
        tx = cuda.threadIdx.x
        for k in range(tx, n, cuda.blockDim.x):
            j = k
            if x[1, k % 20] > 0:
                j = n - 1 - k
                marks[k] = 1
            else:
                marks[k] = 0
            tile[k] = x[j // 20, j % 20]
        cuda.syncthreads()
        for k in range(tx, n, cuda.blockDim.x):
            out[k] = tile[n - 1 - k] + marks[k]

    run(kernel, 1, 64, values(21, 20, 20), 400, np.zeros(400, np.float32))


def test_a_tile_with_a_row_length_of_each_thread():
    @cuda.jit
    def kernel(x, lengths, n, out):
        tile = cuda.shared.array(400, np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        length = lengths[tx]
        for k in range(tx + ty * length, n, cuda.blockDim.x * cuda.blockDim.y):
            tile[k] = x[k // 20, k % 20]
        cuda.syncthreads()
        for k in range(tx + ty * 16, n, 64):
            out[k] = tile[n - 1 - k]

    run(kernel, 1, (16, 4), values(22, 20, 20), np.full(16, 16), 400, np.zeros(400, np.float32))


# --- unswitch_signs ---------------------------------------------------------------------------------------------------


def test_a_first_index_that_wraps_to_a_negative_one():
    @cuda.jit
    def kernel(x, n, out):
        t = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(n + t, 9, 2**63 - 10):
            if k > -30:
                total += x[k]
        out[t] = total

    x = values(23, 40)
    n = LARGEST - 3
    out = launch(kernel, 1, 16, x, n, np.zeros(16, np.float32))[2]
    expected = np.zeros(16, np.float32)
    for t in range(16):
        k = n + t
        if k > LARGEST:
            k -= 2**64
        while k < 9:
            if k > -30:
                expected[t] += x[k]
            k += 2**63 - 10
    np.testing.assert_array_equal(out, expected)


def test_a_first_index_that_is_negative_for_some_threads():
    @cuda.jit
    def kernel(x, n, out):
        t = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(n + (t - 8), 9):
            total += x[k]
        out[t] = total

    run(kernel, 1, 16, values(24, 40), 2, np.zeros(16, np.float32))


def test_a_first_index_with_a_loaded_part():
    @cuda.jit
    def kernel(x, firsts, out):
        t = cuda.threadIdx.x
        total = np.float32(0)
        for k in range(firsts[t] + t, 9):
            total += x[k]
        out[t] = total

    run(kernel, 1, 16, values(25, 40), np.arange(-12, 4), np.zeros(16, np.float32))


# --- merge_blocks -----------------------------------------------------------------------------------------------------


def test_values_that_reach_a_store_after_many_iterations():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        a = b = c = d = e = f = g = h = p = q = r = s = 0
        for k in range(n):
            a = b
            b = c
            c = d
            d = e
            e = f
            f = g
            g = h
            h = p
            p = q
            q = r
            r = s
            s = cuda.threadIdx.x * 3 + 1
        out[i] = x[i] + a

    run(kernel, 400, 16, values(26, 6400), 14, np.zeros(6400, np.float32))


def test_a_sum_of_32_bits_that_is_part_of_an_index():
    @cuda.jit
    def kernel(x, c, out):
        first = np.uint32(cuda.threadIdx.x) + c
        i = np.int64(first) + cuda.blockIdx.x * cuda.blockDim.x - np.int64(c)
        out[i] = x[i] + 1

    run(kernel, 400, 16, values(27, 6400), np.uint32(2**32 - 40), np.zeros(6400, np.float32))
