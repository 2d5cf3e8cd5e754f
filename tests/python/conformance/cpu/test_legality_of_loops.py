"""Loops and branches that the CPU planner must not rewrite, or not in the simplest way: each kernel is wrong without
one condition of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


# --- grid-stride loops ------------------------------------------------------------------------------------------------

LARGEST = 2**63 - 1


@pytest.mark.parametrize("below", [0, 1, 15, 5000])
def test_a_loop_up_to_the_largest_integer(below):
    @cuda.jit
    def kernel(first, n, out):
        t = cuda.threadIdx.x
        for i in range(first + t, n, 16):
            out[t, 0] += 1
            out[t, 1] = i

    n = LARGEST - below
    run(kernel, 1, 64, n - 195, n, np.zeros((64, 2), np.int64))


def test_a_loop_from_the_least_to_the_largest_integer():
    @cuda.jit
    def kernel(first, n, out):
        t = cuda.threadIdx.x
        for i in range(first + t, n, cuda.blockDim.x * 2**50):
            out[t, 0] += 1
            out[t, 1] = i

    run(kernel, 1, 32, -LARGEST, LARGEST, np.zeros((32, 2), np.int64))


def test_a_step_that_wraps():
    @cuda.jit
    def kernel(n, out):
        t = cuda.threadIdx.x
        for i in range(t, n, cuda.blockDim.x * (2**59 - 1)):
            out[t, 0] += 1
            out[t, 1] = i

    run(kernel, 1, 32, -100, np.zeros((32, 2), np.int64))


def test_a_first_index_that_falls_along_x():
    @cuda.jit
    def kernel(x, out):
        t, r = cuda.threadIdx.x, cuda.threadIdx.y
        i = 400 + r * 5 + t * -3
        while i < 600:
            out[r, t] += x[t] + i
            i += 64

    run(kernel, 1, (64, 4), values(4, 64), np.zeros((4, 64), np.float32))


def test_a_loop_that_counts_down_by_a_step_of_the_block():
    @cuda.jit
    def kernel(n, out):
        t = cuda.threadIdx.x
        for i in range(200 + t, n, cuda.blockDim.x + (-40)):
            out[t, i] += 1

    run(kernel, 1, 32, 20, np.zeros((32, 300), np.float32))


def test_an_index_of_32_bits():
    @cuda.jit
    def kernel(x, n, out):
        for i in range(cuda.threadIdx.x, n, np.int32(64)):
            out[i] += x[i]

    run(kernel, 1, 64, values(4, 300), np.int32(300), np.zeros(300, np.float32))


def test_an_index_that_some_iterations_keep():
    @cuda.jit
    def kernel(y, out, n):
        i = cuda.threadIdx.x
        left = y[i]
        while i < n:
            if left > 0:
                left -= 1
                if left > 3:
                    continue
                out[i] += 7
            out[i] += left + 10
            i += 64

    run(kernel, 1, 64, np.abs(values(3, 300, dtype=np.int64)), np.zeros(300, np.int64), 300)


# --- distribute -------------------------------------------------------------------------------------------------------


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


@pytest.mark.cpu
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
        if (t < x.size - 5) & (t % 3 == 1):
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


# --- speculate_stores -------------------------------------------------------------------------------------------------


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
    def kernel(x, n, out):
        tile = cuda.shared.array(400, np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        tile[tx + ty * 16] = 1
        cuda.syncthreads()
        for k in range(tx + ty * (tx + 16 - tx), n, cuda.blockDim.x * cuda.blockDim.y):
            row = k // 20
            column = k % 20
            tile[k] = x[row, column]
        cuda.syncthreads()
        for k in range(tx + ty * 16, n, 64):
            out[k] = tile[n - 1 - k]

    run(kernel, 1, (16, 4), values(22, 20, 20), 400, np.zeros(400, np.float32))


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

    run(kernel, 1, 16, values(24, 40), np.int32(2), np.zeros(16, np.float32))
