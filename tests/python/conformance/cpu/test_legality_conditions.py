"""Kernels that a pass of the CPU planner must leave as they are, or must not rewrite in its simplest way: each is wrong
without one condition of `tests/legality/conditions.txt`."""

import numpy as np
import pytest
from harness import launch, run
from host_memory import AtTheEnd
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


# --- merge_blocks -----------------------------------------------------------------------------------------------------


def test_blocks_with_lanes_are_not_merged():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        out[i] = cuda.laneid

    run(kernel, 400, 20, np.zeros(8000, np.int32))


def test_blocks_that_store_an_index_are_not_merged():
    @cuda.jit
    def kernel(out):
        out[cuda.grid(1)] = cuda.threadIdx.x

    run(kernel, 400, 16, np.zeros(6400, np.int64))


def test_blocks_that_double_an_index_are_not_merged():
    @cuda.jit
    def kernel(out):
        out[cuda.grid(1)] = cuda.threadIdx.x * 2 + cuda.blockIdx.x

    run(kernel, 400, 16, np.zeros(6400, np.int64))


def test_blocks_with_an_index_of_two_values_are_not_merged():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        j = cuda.threadIdx.x + 0
        if x[i] > 0:
            j = i
        out[i] = x[j]

    run(kernel, 400, 16, values(2, 6400), np.zeros(6400, np.float32))


def test_blocks_with_shared_memory_are_not_merged():
    @cuda.jit
    def kernel(x, out):
        total = cuda.shared.array(1, np.float32)
        i = cuda.grid(1)
        total[0] = 0
        for k in range(x.shape[0]):
            total[0] = total[0] * 2 + x[k, i]
        out[i] = total[0]

    run(kernel, 400, 1, values(3, 5, 400), np.zeros(400, np.float32))


# --- permute_axes -----------------------------------------------------------------------------------------------------


def test_axes_with_lanes_are_not_exchanged():
    @cuda.jit
    def kernel(x, out):
        i, j = cuda.grid(2)
        out[i, j] = x[i, j] + cuda.laneid

    run(kernel, (2, 3), (8, 4), values(4, 16, 12), np.zeros((16, 12), np.float32))


# --- grid-stride loops ------------------------------------------------------------------------------------------------


def test_an_index_that_is_read_after_its_loop():
    @cuda.jit
    def kernel(x, out):
        t = cuda.grid(1)
        i = cuda.grid(1)
        while i < x.size:
            x[i] += 1
            i += cuda.gridsize(1)
        out[t] = i

    run(kernel, 2, 16, values(6, 70), np.zeros(32, np.int64))


def test_a_first_index_that_falls_along_y():
    @cuda.jit
    def kernel(x, out):
        first = cuda.threadIdx.x + (8 - cuda.threadIdx.y) * 16
        i = first
        while i < x.size:
            out[i] = x[i] + 1
            i += 8 * 16

    run(kernel, 1, (16, 8), values(7, 200), np.zeros(200, np.float32))


# --- if_convert, extrema ----------------------------------------------------------------------------------------------


@pytest.mark.cpu
def test_a_branch_around_a_load_past_the_end():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < out.size:
            value = np.uint8(0)
            if i < x.size:
                value = x[i]
            out[i] = value * 2

    x = AtTheEnd(values(12, 40, dtype=np.uint8))
    out = np.zeros(50000, np.uint8)
    kernel[200, 256](x, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out[:40], values(12, 40, dtype=np.uint8) * 2)
    assert not out[40:].any()


@pytest.mark.cpu
def test_a_bound_of_an_index_that_wraps():
    @cuda.jit
    def kernel(x, distance, out):
        i = cuda.grid(1)
        # For all threads but the first, the sum is negative.
        if i < out.size and distance >= 0 and i + distance < x.size:
            value = np.uint8(0)
            if out[i] > 4:
                value = x[i]
            out[i] = value

    x = AtTheEnd(values(13, 40, dtype=np.uint8))
    out = np.zeros(50000, np.uint8)
    out[1:40] = 9
    kernel[200, 256](x, 2**63 - 1, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out[1:40], values(13, 40, dtype=np.uint8)[1:])
    assert not out[40:].any()


def test_selects_of_floats_are_no_minima():
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.grid(1)
        x, y = a[i], b[i]
        out[i, 0] = x if x < y else y
        out[i, 1] = y if x < y else x
        out[i, 2] = x if x > y else y

    special = np.array([np.nan, 0.0, -0.0, 1.0, np.inf], np.float64)
    a, b = (part.ravel().copy() for part in np.meshgrid(special, special))
    (out,) = launch(kernel, 1, 25, a, b, np.zeros((25, 3)))[2:]
    expected = np.stack([np.where(a < b, a, b), np.where(a < b, b, a), np.where(a > b, a, b)], 1)
    np.testing.assert_array_equal(out.view(np.uint64), expected.view(np.uint64))


# --- promote_scalars --------------------------------------------------------------------------------------------------


def test_an_accumulator_whose_limit_is_stored():
    @cuda.jit
    def kernel(x, out):
        limits = cuda.shared.array(16, np.int64)
        i = cuda.threadIdx.x
        limits[i] = i
        k = 0
        while k < limits[i]:
            out[i] += x[k]
            limits[i] = i if k < 3 else 0
            k += 1

    run(kernel, 1, 16, values(14, 20), np.zeros(16, np.float32))


def test_an_accumulator_whose_counter_starts_at_an_element():
    @cuda.jit
    def kernel(x, starts, out):
        i = cuda.grid(1)
        k = starts[i]
        starts[i] = 7
        while k < 5:
            out[i] += x[k]
            k += 1

    run(kernel, 1, 16, values(16, 20), np.arange(16, dtype=np.int64), np.zeros(16, np.float32))


def test_an_accumulator_with_an_atomic_operation():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            out[i] += x[k, i]
            cuda.atomic.max(out, i, 3)

    run(kernel, 1, 16, values(18, 9, 16, dtype=np.int32), np.zeros(16, np.int32))


def test_an_accumulator_of_a_thread_that_returns():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            out[i] += x[k, i]
            if x[k, i] == 3:
                return
        out[i] += 100

    run(kernel, 1, 16, values(19, 9, 16, dtype=np.int32), np.zeros(16, np.int32))


@pytest.mark.cpu
def test_an_accumulator_that_some_iterations_skip():
    @cuda.jit
    def kernel(x, out, at):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            if x[k, i] < 5:
                break
            out[i + at] += x[k, i]

    x = np.abs(values(21, 9, 8000, dtype=np.int32)) + 5
    x[0, 4:] = 0
    out = AtTheEnd(np.zeros(4, np.int32))
    kernel[8, 1000](x, out, 0)
    cuda.synchronize()
    np.testing.assert_array_equal(out.array, x[:, :4].sum(0))


def test_an_accumulator_with_an_address_of_two_values():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            j = i
            if x[k, i] > 0:
                j = i + 1
            out[i, j] += x[k, i]

    run(kernel, 1, 16, values(22, 9, 16, dtype=np.int32), np.zeros((16, 17), np.int32))


def test_an_accumulator_whose_address_is_stored():
    @cuda.jit
    def kernel(x, out):
        at = cuda.shared.array(16, np.int64)
        i = cuda.threadIdx.x
        at[i] = 0
        for k in range(x.shape[0]):
            out[i, at[i]] += x[k, i]
            at[i] = (at[i] + 1) % 3

    run(kernel, 1, 16, values(23, 9, 16, dtype=np.int32), np.zeros((16, 3), np.int32))


def test_an_accumulator_with_another_name():
    @cuda.jit
    def kernel(x, out, same):
        i = cuda.grid(1)
        for k in range(x.shape[0]):
            out[i] += x[k, i]
            same[i] *= 2

    x, out = values(24, 5, 16, dtype=np.int32), np.ones(16, np.int32)
    expected = out.copy()
    for k in range(5):
        expected = (expected + x[k]) * 2
    kernel[1, 16](x, out, out)
    np.testing.assert_array_equal(out, expected)
