"""Guards, divisions and arrays that the CPU planner must not rewrite, or not in the simplest way: each kernel is wrong
without one condition of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import launch, run
from host_memory import AtTheEnd
from weft import cuda

LARGEST = 2**63 - 1


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def wrapped(value):
    """An integer modulo 2^64, as a signed number."""
    return (value + 2**63) % 2**64 - 2**63


# --- conjunction ------------------------------------------------------------------------------------------------------


@cuda.jit
def return_at_a_corner(flag, n, m, out):
    part = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    if (flag > 0) & (t + n < m):
        return
    part[t] = t
    cuda.syncthreads()
    out[t] = part[63 - t] + 1


@pytest.mark.parametrize("flag", [0, 1])
def test_a_corner_with_a_value_that_wraps(flag):
    n = LARGEST - 40
    out = launch(return_at_a_corner, 1, 64, flag, n, -5, np.zeros(64, np.float32))[3]
    returns = np.array([flag > 0 and wrapped(n + t) < -5 for t in range(64)])
    if flag == 0:
        np.testing.assert_array_equal(out, 64 - np.arange(64))
    np.testing.assert_array_equal(out != 0, ~returns)


@pytest.mark.parametrize("flag", [0, 1])
def test_a_corner_of_every_third_thread(flag):
    @cuda.jit
    def kernel(flag, m, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        if (flag > 0) & (t < m) & (t % 3 == 1):
            return
        part[t] = t
        cuda.syncthreads()
        out[t] = part[t] + 1

    run(kernel, 1, 64, flag, 30, np.zeros(64, np.float32))


@pytest.mark.parametrize("flag", [0, 1])
def test_a_corner_of_a_32_bit_index(flag):
    @cuda.jit(typing="numpy")
    def kernel(flag, m, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        if (flag > np.int32(0)) & (np.int32(t) < m):
            return
        part[t] = t
        cuda.syncthreads()
        out[t] = part[t] + 1

    out = np.zeros(64, np.float32)
    kernel[1, 64](np.int32(flag), np.int32(30), out)
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 30 * flag, 0, np.arange(64) + 1))


# --- divisions --------------------------------------------------------------------------------------------------------


def test_a_quotient_of_a_value_that_wraps():
    @cuda.jit
    def kernel(n, out):
        t = cuda.threadIdx.x
        out[t] = (n + t) // 7

    n = LARGEST - 20
    out = launch(kernel, 1, 64, n, np.zeros(64, np.int64))[1]
    np.testing.assert_array_equal(out, [wrapped(n + t) // 7 for t in range(64)])


def test_a_quotient_of_an_index_of_several_values():
    @cuda.jit
    def kernel(x, shifts, out):
        t = cuda.grid(1)
        total = np.float32(0)
        for i in range(t, x.size // 2, cuda.gridsize(1)):
            total = x[i + shifts[i // cuda.gridsize(1)]] - total
        out[t] = total

    x, out = values(6, 40 * 1024), np.zeros(1024, np.float32)
    shifts = np.arange(20)
    kernel[4, 256](x, shifts, out)
    total = np.zeros(1024, np.float32)
    for k in range(20):
        total = x[k * 1024 + k : k * 1024 + k + 1024] - total
    np.testing.assert_array_equal(out, total)


def test_a_remainder_of_a_value_that_wraps():
    @cuda.jit
    def kernel(n, out):
        t = cuda.threadIdx.x
        if (n + t) % 19 == 3:
            out[t] = 1

    n = LARGEST - 20
    out = launch(kernel, 1, 128, n, np.zeros(128, np.int64))[1]
    np.testing.assert_array_equal(out, [wrapped(n + t) % 19 == 3 for t in range(128)])


@cuda.jit
def column(n, m):
    if m > 100:
        return column(n, m - 1) + column(n, m - 2)
    return cuda.grid(1) % n


def test_a_function_that_reads_the_index():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i // n, i % n] + x[0, column(n, 50)]

    run(kernel, 24, 128, values(14, 30, 200), 100, np.zeros(3000, np.float32))


def test_an_index_of_two_factors():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.blockIdx.x * 128 + cuda.threadIdx.x
        j = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
        if i < out.size:
            out[i] = x[i // n, i % n] + x[j // n, j % n]

    for block in (96, 128, 64):
        run(kernel, 24, block, values(14, 30, 200), 100, np.zeros(3000, np.float32))


def test_a_quotient_beside_another_sum_of_the_index():
    @cuda.jit
    def kernel(x, n, ahead, out, other):
        i = cuda.grid(1)
        j = cuda.blockIdx.x * cuda.blockDim.x + (cuda.threadIdx.x + ahead)
        if i < out.size:
            out[i] = x[i // n, i % n]
            other[j] = x[i // n, i % n] + 1

    for block in (96, 128):
        run(kernel, 24, block, values(14, 30, 200), 100, 5, np.zeros(2000, np.float32), np.zeros(4000, np.float32))


# --- scaled -----------------------------------------------------------------------------------------------------------


def test_an_index_of_the_iteration_before():
    @cuda.jit
    def kernel(x, scale, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        at = (t - 40) * scale
        for k in range(3):
            part[t] = x[at]
            at = (t + 5 + k) * scale
            cuda.syncthreads()
            out[t] += part[63 - t] * (k + 1)
            cuda.syncthreads()
        out[t] += x[at] * 10

    run(kernel, 1, 64, values(1, 300), 3, np.zeros(64, np.float32))


# --- merge_blocks, split_rows -----------------------------------------------------------------------------------------


def test_a_part_of_the_index_that_wraps_in_32_bits():
    @cuda.jit(typing="numpy")
    def kernel(ahead, out):
        own = np.int64(cuda.threadIdx.x + ahead)
        i = np.int64(cuda.blockIdx.x) * np.int64(cuda.blockDim.x) + own
        out[cuda.grid(1)] = i

    ahead, i = np.int32(2**31 - 40), np.arange(4096)
    out = np.zeros(4096, np.int64)
    kernel[64, 64](ahead, out)
    np.testing.assert_array_equal(out, i // 64 * 64 + ((i % 64).astype(np.int32) + ahead).astype(np.int64))


def test_rows_of_threads_that_wait_for_each_other():
    @cuda.jit
    def kernel(a, b, out):
        part = cuda.shared.array(512, np.int64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        total = 0
        for k in range(y + 1):
            total += a[y, k] * b[k, x]
        part[y * 32 + x] = total
        cuda.syncthreads()
        out[y, x] = total + part[(15 - y) * 32 + x]

    a, b = values(21, 16, 16, dtype=np.int32), values(22, 16, 32, dtype=np.int32)
    run(kernel, 1, (32, 16), a, b, np.zeros((16, 32), np.int64))


def test_rows_of_threads_with_lanes():
    @cuda.jit
    def kernel(a, b, out):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        total = 0
        for k in range(y + 1):
            total += a[y, k] * b[k, x]
        out[y, x] = total * 100 + cuda.laneid

    a, b = values(23, 16, 16, dtype=np.int32), values(24, 16, 16, dtype=np.int32)
    run(kernel, 1, (16, 16), a, b, np.zeros((16, 16), np.int64))


# --- guards -----------------------------------------------------------------------------------------------------------


def test_a_value_that_is_assigned_before_a_guard_and_read_after_a_barrier():
    @cuda.jit
    def kernel(x, n, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        value = x[t] * 2
        if t < n:
            part[t] = value
        cuda.syncthreads()
        out[t] = value + part[t % 5]

    run(kernel, 1, 64, values(3, 64), 30, np.zeros(64, np.float32))


# --- xor_partner ------------------------------------------------------------------------------------------------------


@pytest.mark.cpu
def test_a_sum_in_the_order_of_threads_with_partners():
    @cuda.jit
    def kernel(x, total, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        out[t] = part[t ^ 8] + part[t]
        cuda.atomic.add(total, 0, part[t])

    x = np.ones(64, np.float32)
    x[1], x[5], x[12], x[40] = 1e8, -1e8, 1e8, -1e8
    run(kernel, 1, 64, x, np.zeros(1, np.float32), np.zeros(64, np.float32))


# --- steady_state -----------------------------------------------------------------------------------------------------


@pytest.mark.cpu
def test_lines_of_threads_with_neighbors(capfd):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < out.size:
            left = max(i - 1, 0)
            right = min(i + 1, x.size - 1)
            print(i)
            out[i] = x[left] + x[right]

    kernel[1, 16](values(8, 16), np.zeros(16, np.float32))
    cuda.synchronize()
    lines = capfd.readouterr().out.split()
    assert lines == [str(i) for i in range(16)]


def test_a_distance_that_each_iteration_doubles():
    @cuda.jit
    def kernel(x, n, out):
        part = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        total = count = np.float32(0)
        s = 1
        while s < n + t:
            total = part[t ^ (s & 63)] + part[t] - total
            count += np.float32(1)
            if count > 20:
                break
            s *= 2
        out[t] = total + 100 * count

    run(kernel, 1, 64, values(4, 64), 40, np.zeros(64, np.float32))


# --- context ----------------------------------------------------------------------------------------------------------


def test_a_pointer_to_an_array_of_the_thread_after_a_barrier():
    @cuda.jit
    def kernel(x, out):
        a = cuda.local.array(4, np.float32)
        b = cuda.local.array(4, np.float32)
        t = cuda.threadIdx.x
        for k in range(4):
            a[k] = x[t] + k
            b[k] = x[t] - k
        p = a if x[t] > 0 else b
        cuda.syncthreads()
        out[t] = p[t % 4]

    run(kernel, 1, 64, values(9, 64), np.zeros(64, np.float32))


def test_an_array_of_the_thread_with_loaded_indices():
    @cuda.jit
    def kernel(x, at, out):
        a = cuda.local.array(64, np.float32)
        t = cuda.threadIdx.x
        a[at[t]] = x[t]
        out[t] = a[at[t + 64]]

    run(kernel, 1, 64, values(10, 64), np.full(128, 5), np.zeros(64, np.float32))


def test_a_load_after_a_store_that_may_be_its_own():
    @cuda.jit
    def kernel(x, at, out):
        t = cuda.threadIdx.x
        out[2 * t] = x[t]
        out[2 * t + 1] = out[at[t]] + 1

    run(kernel, 1, 64, values(11, 64), 2 * np.arange(64), np.zeros(128, np.float32))


# --- next_iteration ---------------------------------------------------------------------------------------------------


@pytest.mark.cpu
def test_an_address_of_the_next_iteration_past_the_end():
    @cuda.jit
    def kernel(b, starts, out):
        tile = cuda.shared.array((16, 16), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for k in range(starts.size):
            start = starts[k]
            tile[ty, tx] = b[start + ty, cuda.blockIdx.x * 16 + tx]
            cuda.syncthreads()
            for j in range(16):
                total += tile[j, tx]
            cuda.syncthreads()
        out[ty, cuda.blockIdx.x * 16 + tx] = total

    b, starts = values(58, 40, 32), np.array([3, 20])
    at_the_end, out = AtTheEnd(starts), np.zeros((16, 32), np.float32)
    kernel[2, (16, 16)](b, at_the_end, out)
    np.testing.assert_array_equal(out, np.broadcast_to(b[3:19].sum(0) + b[20:36].sum(0), (16, 32)))
