"""Strided loops that read global memory and write shared memory: unrolled, with the loads of all iterations first."""

import numpy as np
import pytest
from harness import run
from weft import cuda

RNG = np.random.default_rng(11)


@cuda.jit
def counted(x, y, scale, bins, last):
    counts = cuda.shared.array(32, np.int32)
    tid = cuda.threadIdx.x
    if tid < 32:
        counts[tid] = 0
    cuda.syncthreads()
    row = -1
    for i in range(tid, x.size, cuda.blockDim.x):
        column = min(max(int(x[i] * scale), 0), 7)
        row = min(max(int(y[i] * scale), 0), 3)
        cuda.atomic.add(counts, row * 8 + column, 1)
    last[tid] = row
    cuda.syncthreads()
    if tid < 32:
        bins[tid] = counts[tid]


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 63, 64, 65, 200, 1000])
def test_histograms(n):
    x, y = RNG.random((2, n), dtype=np.float32) * 2 - 0.5
    run(counted, 1, 32, x, y, np.float32(8), np.zeros(32, np.int32), np.zeros(32, np.int64))


@cuda.jit
def carried(x, out):
    """Values that an iteration passes to the next one: in a local variable, in shared memory, or not at all."""
    own = cuda.local.array(4, np.int32)
    for k in range(4):
        own[k] = k
    before = 7
    seen = 0
    twice = 0
    for i in range(cuda.threadIdx.x, x.size, 3):
        value = x[i]
        index = value & 3
        mixed = own[index] + before
        own[index] = mixed ^ value
        if value % 2:
            twice = value * 2
        seen += twice + x[i] * i
        before = value
        later = own[3] + seen
        own[(index + 1) & 3] = later
    for k in range(4):
        out[cuda.threadIdx.x, k] = own[k]
    out[cuda.threadIdx.x, 4] = before
    out[cuda.threadIdx.x, 5] = seen
    out[cuda.threadIdx.x, 6] = twice


@pytest.mark.parametrize("n", [0, 3, 11, 12, 13, 14, 50])
def test_what_turns_leave_to_each_other(n):
    run(carried, 1, 4, RNG.integers(0, 1000, n, dtype=np.int32), np.zeros((4, 7), np.int64))


@cuda.jit
def reads_first(x, out):
    """A variable that is read before an iteration sets it has the value of the previous iteration."""
    own = cuda.local.array(2, np.int64)
    own[0] = own[1] = 0
    value = 5
    for i in range(cuda.threadIdx.x, x.size, 2):
        own[0] += value
        value = x[i]
        own[1] = own[1] * 3 + value
    out[cuda.threadIdx.x, 0] = own[0]
    out[cuda.threadIdx.x, 1] = own[1]


@pytest.mark.parametrize("n", [0, 2, 9, 10, 11, 31])
def test_values_of_the_turn_before(n):
    run(reads_first, 1, 2, RNG.integers(0, 1000, n, dtype=np.int32), np.zeros((2, 2), np.int64))


SMALL = [0.0, -0.0, 0.49, -0.51, 6.99, 7.0, 8.5, -3.0]
ENDS = [2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**32, 1e10, -1e10]
FLOATS = [*SMALL, *ENDS, 2.0**63, -(2.0**63), 1e300, -1e300, np.inf, -np.inf, np.nan]


@cuda.jit
def clamped(x, out, flags):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = min(max(int(x[i]), 0), 7)
        out[i, 1] = max(min(int(x[i] * 2), 100), -100)
        out[i, 2] = min(max(int(x[i]), -(2**31)), 2**31 - 1)
        out[i, 3] = min(max(int(x[i]), 3), int(x[i] / 2) & 15)
        flags[i, 0] = int(x[i]) < 7
        flags[i, 1] = 0 <= int(x[i])
        flags[i, 2] = int(x[i]) == -3
        flags[i, 3] = int(x[i]) > 2**31 - 2
        flags[i, 4] = int(x[i]) < -(2**31) + 1
        flags[i, 5] = max(int(x[i]), 5) != 5
        flags[i, 6] = int(x[i]) >= -(2**31)
        flags[i, 7] = int(x[i]) > 2**31 - 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clamps_of_floats(dtype):
    """Floats saturate to 64-bit integers, and clamps must not assume a smaller range."""
    with np.errstate(over="ignore"):
        x = np.array(FLOATS).astype(dtype)
        wide = np.array(FLOATS).astype(dtype).astype(np.float64)
    out, flags = np.zeros((x.size, 4), np.int64), np.zeros((x.size, 8), np.bool_)
    clamped[1, 32](x, out, flags)

    def whole(value):
        if np.isnan(value):
            return 0
        return min(max(int(value) if np.isfinite(value) else (2**63 if value > 0 else -(2**63)), -(2**63)), 2**63 - 1)

    with np.errstate(over="ignore"):
        doubled, halved = (x * dtype(2)).astype(np.float64), (x / dtype(2)).astype(np.float64)
    for k, value in enumerate(wide):
        n, two, half = whole(value), whole(doubled[k]), whole(halved[k])
        expected = [
            min(max(n, 0), 7),
            max(min(two, 100), -100),
            min(max(n, -(2**31)), 2**31 - 1),
            min(max(n, 3), half & 15),
        ]
        assert out[k].tolist() == expected, value
        wanted = [n < 7, n >= 0, n == -3, n > 2**31 - 2, n < -(2**31) + 1, max(n, 5) != 5, n >= -(2**31), n > 2**31 - 1]
        assert flags[k].tolist() == wanted, value


@cuda.jit
def scaled(x, y, scale):
    start = cuda.grid(1)
    step = cuda.gridsize(1)
    for i in range(start, x.size, step):
        y[i] = x[i] * scale + y[i]


@cuda.jit
def normalized(a, out):
    row = cuda.blockIdx.x
    total = np.float32(1)
    for i in range(cuda.threadIdx.x, a.shape[1], 32):
        out[row, i] = a[row, i] / total if a[row, i] > 0 else a[row, i]


@cuda.jit
def gathered(indices, x, out):
    for i in range(cuda.threadIdx.x, out.size, cuda.blockDim.x):
        if indices[i] % 3:
            out[i] = x[indices[i]]
        else:
            out[i] = x[i] - indices[i]


@cuda.jit
def moved(x, by, turns):
    """Each iteration reads elements that a previous one wrote."""
    for i in range(cuda.threadIdx.x, turns, 4):
        x[i + by] = x[i] + 1


@cuda.jit
def counted_globally(x, bins, last):
    value = -1
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        value = x[i] & 7
        cuda.atomic.add(bins, value, 1)
        last[cuda.grid(1)] += value * i


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 95, 96, 97, 127, 128, 129, 1000])
def test_loops_that_write_arrays(n):
    x, y = RNG.random((2, n), dtype=np.float32) - np.float32(0.5)
    run(scaled, 1, 32, x, y, np.float32(3))
    run(normalized, 3, 32, RNG.random((3, n), dtype=np.float32) - np.float32(0.5), np.zeros((3, n), np.float32))
    indices = RNG.integers(0, max(n, 1), n, dtype=np.int32)
    run(gathered, 1, 32, indices, x, np.zeros(n, np.float32))
    numbers = RNG.integers(0, 100, n, dtype=np.int32)
    run(counted_globally, 2, 16, numbers, np.zeros(8, np.int32), np.zeros(32, np.int64))


@pytest.mark.parametrize("by", [1, 4, 8, 12, 16])
def test_loops_that_read_what_they_write(by):
    run(moved, 1, 1, np.arange(200, dtype=np.int32), by, 150)


def test_arrays_that_share_memory():
    """Iterations that read through one array the elements that earlier iterations wrote through another one."""
    for by in (1, 4, 5, 32, 33, 64):
        memory = np.arange(400, dtype=np.float32)
        expected = memory.copy()
        for i in range(0, 300, 32):  # the only thread's iterations, in order
            expected[i + by] = expected[i] * np.float32(2) + expected[i + by]
        given = cuda.to_device(memory)
        scaled_in_order[1, 1](given[:300], given[by : by + 300], np.float32(2))
        np.testing.assert_array_equal(given.copy_to_host(), expected)


@cuda.jit
def scaled_in_order(x, y, scale):
    for i in range(0, x.size, 32):
        y[i] = x[i] * scale + y[i]
