"""Atomic operations whose old values are not used: counts, sums and extrema in global memory, which a CPU's workers may
apply to private copies. Also arrays that are too long for a copy, overlapping arrays, and elements that are read."""

import numpy as np
import pytest
from weft import cuda

INTS = [np.int32, np.uint32, np.int64, np.uint64]
N = 5000

# Too many elements for a private copy.
FAR = 9000


def draws(seed, low, high, n=N, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, n).astype(dtype)


@cuda.jit
def count(keys, bins):
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(bins, keys[i], 1)


@cuda.jit
def count_by_strides(keys, bins):
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, keys[i], 1)


@pytest.mark.parametrize("kernel", [count, count_by_strides])
@pytest.mark.parametrize("dtype", [*INTS, np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 7, 256, FAR, 3 * FAR])
def test_counts(kernel, dtype, n_bins):
    keys = draws(1, 0, n_bins)
    bins = draws(2, 0, 9, n_bins, dtype)
    expected = (bins + np.bincount(keys, minlength=n_bins)).astype(dtype)
    kernel[79, 64](keys, bins)
    np.testing.assert_array_equal(bins, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64])
def test_keys_of_other_types_and_below_zero(dtype):
    keys = draws(3, 0, 100, dtype=dtype)
    if np.issubdtype(dtype, np.signedinteger):
        keys -= 50
    bins = np.zeros(300, np.int32)
    expected = np.bincount(keys.astype(int) % 300, minlength=300)
    count[20, 256](keys, bins)
    np.testing.assert_array_equal(bins, expected)


@cuda.jit
def count_pairs(rows, columns, bins):
    i = cuda.grid(1)
    if i < rows.size:
        cuda.atomic.add(bins, (rows[i], columns[i]), 2)


@pytest.mark.parametrize("shape", [(3, 5), (32, 32), (70, 300)])
@pytest.mark.parametrize("order", ["C", "F", "steps"])
def test_matrices(shape, order):
    rows, columns = draws(4, 0, shape[0]), draws(5, 0, shape[1])
    whole = np.zeros((2 * shape[0], 3 * shape[1]), np.int32)
    bins = whole[::2, ::-3] if order == "steps" else np.zeros(shape, np.int32, order=order)
    expected = np.zeros(shape, np.int64)
    np.add.at(expected, (rows, columns), 2)
    count_pairs[20, 256](rows, columns, bins)
    np.testing.assert_array_equal(bins, expected)
    assert whole.sum() in (0, 2 * N)


def step_of(name):
    step = getattr(cuda.atomic, name)

    @cuda.jit
    def kernel(keys, values, out):
        i = cuda.grid(1)
        if i < keys.size:
            step(out, keys[i], values[i])

    return kernel


UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum,
    "min": np.minimum,
    "nanmax": np.fmax,
    "nanmin": np.fmin,
}


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("n_bins", [1, 40, FAR])
@pytest.mark.parametrize("name", UFUNCS)
def test_integers(name, n_bins, dtype):
    info = np.iinfo(dtype)
    generator = np.random.default_rng(6)
    values = generator.integers(info.min, info.max, N, dtype, endpoint=True)
    values[:3] = info.min, info.max, 0
    keys = draws(7, 0, n_bins)
    out = generator.integers(info.min, info.max, n_bins, dtype, endpoint=True)
    expected = out.copy()
    UFUNCS[name].at(expected, keys, values)
    step_of(name)[20, 256](keys, values, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 40, FAR])
@pytest.mark.parametrize("name", ["add", "sub", "max", "min", "nanmax", "nanmin"])
def test_floats(name, n_bins, dtype):
    values = draws(8, -60, 60, dtype=dtype) / 4
    keys = draws(9, 0, n_bins)
    if name.startswith("nan"):
        values[::7] = np.nan
    out = draws(10, -9, 9, n_bins, dtype)
    expected = out.copy()
    UFUNCS[name].at(expected, keys, values)
    step_of(name)[20, 256](keys, values, out)
    np.testing.assert_array_equal(out, expected)


def test_zeros_keep_their_signs():
    keys = np.array([0, 1, 1, 2, 4], np.int32)
    values = np.array([-0.0, 0.0, -0.0, np.inf, np.nan], np.float32)
    out = np.full(6, -0.0, np.float32)
    step_of("add")[1, 32](keys, values, out)
    np.testing.assert_array_equal(np.signbit(out), [True, False, False, True, np.signbit(out[4]), True])
    np.testing.assert_array_equal(out, np.array([0, 0, np.inf, 0, np.nan, 0], np.float32))


@cuda.jit
def sums_and_differences(keys, values, out):
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(out, keys[i], values[i])
        cuda.atomic.sub(out, 3, values[i])


def test_sums_and_differences_of_one_array():
    keys, values, out = draws(11, 0, 60), draws(12, -5, 50), draws(13, 0, 9, 60)
    expected = out + np.bincount(keys, values, 60).astype(np.int32)
    expected[3] -= values.sum()
    sums_and_differences[20, 256](keys, values, out)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def sums_and_extrema(keys, values, out):
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(out, keys[i], values[i])
    cuda.atomic.max(out, 0, 1000)


def test_steps_of_two_kinds_are_those_of_the_array():
    # One thread: first all its operations of one kind, then those of the other.
    keys, values = np.array([0], np.int32), np.array([-7], np.int32)
    out = np.array([2000, 5], np.int32)
    sums_and_extrema[1, 1](keys, values, out)
    np.testing.assert_array_equal(out, [1993, 5])
    sums_and_extrema[3, 1](keys, np.array([-1500], np.int32), out)
    np.testing.assert_array_equal(out, [1000, 5])


@cuda.jit
def conditions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] > 10:
            cuda.atomic.add(out, 0, 1)
        if x[i] > 10 and x[i] % 2 == 0:
            cuda.atomic.add(out, 1, x[i])
        elif x[i] < -10:
            cuda.atomic.sub(out, 2, 3)
        else:
            cuda.atomic.add(out, 3, 1)
        for k in range(i % 4):
            if x[i] < k:
                cuda.atomic.add(out, 4, 1)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 5, 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_conditions(dtype):
    x = draws(14, -40, 40)
    out = np.arange(8).astype(dtype)
    conditions[40, 128](x, out)
    i = np.arange(N)
    even = (x > 10) & (x % 2 == 0)
    less = sum(((k < i % 4) & (x < k)).sum() for k in range(4))
    expected = [(x > 10).sum(), x[even].sum(), -3 * (x < -10).sum(), (~even & (x >= -10)).sum(), less, 40, 0, 0]
    np.testing.assert_array_equal(out, np.arange(8) + expected)


@cuda.jit
def histogram_in_shared(keys, bins, others):
    counts = cuda.shared.array(64, np.int32)
    more = cuda.shared.array(0, np.int32)
    tid = cuda.threadIdx.x
    if tid < 64:
        counts[tid] = 0
        more[tid] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, keys[i], 1)
        cuda.atomic.max(more, keys[i], i)
    cuda.syncthreads()
    if tid < 64:
        cuda.atomic.add(bins, tid, counts[tid])
        cuda.atomic.max(others, 63 - tid, more[tid])


def test_blocks_share_memory_of_both_kinds():
    keys, bins, others = draws(15, 0, 64), np.ones(64, np.int32), np.zeros(64, np.int32)
    histogram_in_shared[11, 96, 0, 4 * 64](keys, bins, others)
    np.testing.assert_array_equal(bins, 1 + np.bincount(keys, minlength=64))
    last = np.zeros(64, np.int32)
    np.maximum.at(last, 63 - keys, np.arange(N, dtype=np.int32))
    np.testing.assert_array_equal(others, last)


@cuda.jit
def tickets(out, order):
    i = cuda.grid(1)
    cuda.atomic.add(out, 1, 1)
    order[i] = cuda.atomic.add(out, 0, 1)


def test_old_values_are_the_arrays():
    out, order = np.zeros(2, np.int32), np.zeros(512, np.int32)
    tickets[8, 64](out, order)
    np.testing.assert_array_equal(np.sort(order), np.arange(512))
    np.testing.assert_array_equal(out, [512, 512])


@cuda.jit
def total_of_the_last(x, total, arrived, out):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, x[i])
    cuda.threadfence()
    if cuda.atomic.add(arrived, 0, 1) == cuda.gridsize(1) - 1:
        cuda.threadfence()
        out[0] = total[0]


def test_who_comes_last_sees_what_all_have_added():
    x, out = draws(16, 0, 100, 1024), np.zeros(1, np.int32)
    total_of_the_last[16, 64](x, np.zeros(1, np.int32), np.zeros(1, np.int32), out)
    assert out[0] == x.sum()


@cuda.jit
def adds_and_reads(bins, view, seen):
    b = cuda.blockIdx.x
    cuda.atomic.add(bins, b, 7)
    seen[b] = view[b]


@cuda.jit
def adds_and_writes(bins, view):
    b = cuda.blockIdx.x
    view[b] = 50
    cuda.atomic.add(bins, b, 7)
    if b % 2:
        view[b] = 60


@cuda.jit
def adds_to_both(parts, bins):
    b = cuda.blockIdx.x
    for _ in range(2):
        cuda.atomic.add(bins, b, 2**32 - 1)
        cuda.atomic.add(parts, 2 * b, 1)


def test_arrays_that_share_memory():
    bins, view, seen = (cuda.to_device(np.zeros(40, np.int32)) for _ in range(3))
    # The first launches have disjoint arrays: code that is compiled for them must not run the later launches.
    adds_and_reads[40, 1](bins, view, seen)
    np.testing.assert_array_equal(seen.copy_to_host(), 0)
    adds_and_writes[40, 1](bins, view)
    np.testing.assert_array_equal(bins.copy_to_host(), 14)
    adds_and_reads[40, 1](bins, bins, seen)
    np.testing.assert_array_equal(seen.copy_to_host(), 21)
    adds_and_reads[20, 1](bins[20:], bins[20:40], seen)
    np.testing.assert_array_equal(seen.copy_to_host(), [28] * 20 + [21] * 20)
    adds_and_writes[40, 1](bins, bins)
    np.testing.assert_array_equal(bins.copy_to_host(), [57, 60] * 20)


def test_elements_that_are_parts_of_others():
    wide, parts = cuda.to_device(np.zeros(8, np.uint64)), cuda.to_device(np.zeros(16, np.uint32))
    adds_to_both[8, 1](parts, wide)
    np.testing.assert_array_equal(wide.copy_to_host(), 2**33 - 2)
    np.testing.assert_array_equal(parts.copy_to_host(), [2, 0] * 8)
    wide.copy_to_device(np.zeros(8, np.uint64))
    adds_to_both[8, 1](wide.view(np.uint32), wide)
    # The low half overflows without a carry, twice.
    np.testing.assert_array_equal(wide.copy_to_host(), 0)


@cuda.jit
def adds_and_stores(bins, x):
    i = cuda.grid(1)
    if i == 0:
        bins[1] = 100
    cuda.syncthreads()
    cuda.atomic.add(bins, 1, x[i])


def test_elements_that_are_stored_too():
    x, bins = draws(17, 0, 9, 64), np.zeros(3, np.int32)
    adds_and_stores[1, 64](bins, x)
    np.testing.assert_array_equal(bins, [0, 100 + x.sum(), 0])


@cuda.jit(device=True)
def add_to(array, index, value):
    cuda.atomic.add(array, index, value)


@cuda.jit
def sums_by_a_function(points, labels, sums, counts):
    i = cuda.grid(1)
    if i < points.shape[0]:
        label = labels[i]
        row = sums[label]
        for d in range(points.shape[1]):
            cuda.atomic.add(row, d, points[i, d])
        add_to(counts, label, 1)


@pytest.mark.parametrize("groups", [3, 6000])
def test_rows_of_sums(groups):
    points, labels = draws(18, 0, 50, 4 * N, np.float64).reshape(N, 4), draws(19, 0, groups)
    sums, counts = np.zeros((groups, 4)), np.zeros(groups, np.int64)
    sums_by_a_function[40, 128](points, labels, sums, counts)
    expected = np.zeros((groups, 4))
    np.add.at(expected, labels, points)
    np.testing.assert_array_equal(sums, expected)
    np.testing.assert_array_equal(counts, np.bincount(labels, minlength=groups))


@cuda.jit
def complex_parts(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out.real, i % out.size, x[i])
        cuda.atomic.add(out.imag, 0, 1)


def test_parts_of_complex_numbers():
    x, out = draws(20, 0, 9, dtype=np.float64), np.zeros(5, np.complex128)
    complex_parts[40, 128](x, out)
    np.testing.assert_array_equal(out.real, np.bincount(np.arange(N) % 5, x))
    np.testing.assert_array_equal(out.imag, [N, 0, 0, 0, 0])


def test_launch_after_launch():
    keys, bins = draws(21, 0, 16), np.zeros(16, np.int32)
    for _ in range(5):
        count_by_strides[7, 32](keys, bins)
        count[N // 64 + 1, 64](keys, bins)
        count[1, 1](keys[:0], bins)
    np.testing.assert_array_equal(bins, 10 * np.bincount(keys, minlength=16))
