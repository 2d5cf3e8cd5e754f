"""atomic.add on all types and address spaces, and fences."""

import numpy as np
import pytest
from harness import assert_exact, launch, run
from weft import cuda

TYPES = ["int32", "uint32", "int64", "uint64", "float32", "float64"]


@cuda.jit
def at_float_indices(a, b, f):
    cuda.atomic.add(a, f, 1)
    cuda.atomic.add(b, (f, 1.9), 2)
    cuda.atomic.add(b, (0, f), 3)


@pytest.mark.parametrize("index", [1.7, -1.2, np.float32(2.5), 0.0])
def test_float_indices_are_truncated(index):
    a, b, _ = launch(at_float_indices, 1, 1, np.zeros(4, np.int64), np.zeros((3, 3), np.int64), index)
    wanted, wanted_b = np.zeros(4, np.int64), np.zeros((3, 3), np.int64)
    wanted[int(index)] += 1
    wanted_b[int(index), 1] += 2
    wanted_b[0, int(index)] += 3
    assert_exact(a, wanted)
    assert_exact(b, wanted_b)


@cuda.jit
def count(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


@pytest.mark.parametrize("dtype", TYPES)
def test_histogram(dtype):
    x = np.random.default_rng(6).integers(0, 8, 5000)
    bins = launch(count, 40, 128, x, np.zeros(8, dtype))[1]
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=8))


@cuda.jit
def tickets(counter, seen):
    ticket = cuda.atomic.add(counter, 0, 1)
    seen[ticket] += 1


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_the_old_value_is_returned(dtype):
    counter, seen = launch(tickets, 8, 64, np.zeros(1, dtype), np.zeros(512, np.int32))
    assert counter[0] == 512
    assert (seen == 1).all(), "two threads had the same old value"


@cuda.jit
def old_float(total, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.add(total, 0, 0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_old_float_is_returned(dtype):
    total, old = launch(old_float, 4, 32, np.zeros(1, dtype), np.zeros(128, dtype))
    assert total[0] == 64
    np.testing.assert_array_equal(np.sort(old), np.arange(128) * 0.5)


@cuda.jit
def shared_bins(x, bins):
    mine = cuda.shared.array(16, np.int32)
    t = cuda.threadIdx.x
    if t < 16:
        mine[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, mine[t])


def test_shared_memory():
    x = np.random.default_rng(7).integers(0, 16, 3000).astype(np.uint8)
    bins = launch(shared_bins, 5, 96, x, np.zeros(16, np.int32))[1]
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=16))


@pytest.mark.parametrize("dtype", TYPES)
def test_shared_memory_of_each_type(dtype):
    kind = np.dtype(dtype)

    @cuda.jit
    def kernel(out):
        total = cuda.shared.array(1, kind)
        if cuda.threadIdx.x == 0:
            total[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(total, 0, cuda.threadIdx.x)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = total[0]

    out = launch(kernel, 3, 100, np.zeros(3, dtype))[0]
    assert out.tolist() == [4950] * 3


@cuda.jit
def by_tuple(x, sums):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        cuda.atomic.add(sums, (i % 2, -1 - j % 3), x[i, j])


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_tuple_indices(dtype):
    x = np.arange(80).reshape(8, 10).astype(dtype)
    run(by_tuple, (2, 3), (4, 4), x, np.zeros((2, 3), dtype))


@cuda.jit
def grid_tuple(sums):
    cuda.atomic.add(sums, cuda.grid(2), 2)
    cuda.atomic.add(sums[1:], (0, 0), 5)
    cuda.atomic.add(sums[0], -1, 1)


def test_views_and_tuple_variables():
    run(grid_tuple, (1, 1), (3, 4), np.zeros((3, 4), np.int32))


@cuda.jit
def converts(out):
    cuda.atomic.add(out, 0, 2.75)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_value_is_converted(dtype):
    out = launch(converts, 1, 4, np.zeros(1, dtype))[0]
    assert out[0] == (11 if dtype[0] == "f" else 8)


@cuda.jit
def subtracts(out, amount):
    cuda.atomic.add(out, 0, amount)


@pytest.mark.parametrize("dtype", TYPES)
def test_negative_amounts_wrap(dtype):
    out = launch(subtracts, 1, 10, np.array([3], dtype), -1)[0]
    expected = np.array(-7).astype(dtype)
    assert out[0] == expected


@cuda.jit
def fences(x, out):
    i = cuda.grid(1)
    x[i] = i + 1
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.threadfence_system()
    out[i] = x[i]


def test_fences():
    out = run(fences, 2, 32, np.zeros(64, np.int64), np.zeros(64, np.int64))[1]
    assert out.tolist() == list(range(1, 65))


@cuda.jit
def last_block_sums(x, partial, counter, out):
    is_last = cuda.shared.array(1, np.int32)
    t = cuda.threadIdx.x
    if t == 0:
        total = 0
        for k in range(cuda.blockIdx.x * 64, min((cuda.blockIdx.x + 1) * 64, x.size)):
            total += x[k]
        partial[cuda.blockIdx.x] = total
        cuda.threadfence()
        is_last[0] = cuda.atomic.add(counter, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0] and t == 0:
        total = 0
        for k in range(cuda.gridDim.x):
            total += partial[k]
        out[0] = total


def test_the_last_block_sees_all_partial_sums():
    x = np.arange(1000)
    zeros = np.zeros(16, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int64)
    out = launch(last_block_sums, 16, 32, x, *zeros)[3]
    assert out[0] == x.sum()


def own_memory(x, out, n):
    i = cuda.grid(1)
    own = cuda.local.array(4, np.int64)
    for k in range(4):
        own[k] = i + k
    out[i, 0] = cuda.atomic.add(own, i & 3, 5)
    out[i, 1] = own[i & 3]
    # Local memory in some threads, and the array in others.
    either = own if i >= n else x
    out[i, 2] = cuda.atomic.add(either, 1 if i >= n else i, 7)
    out[i, 3] = own[1]


@pytest.mark.parametrize("opt", [True, False])
def test_a_thread_s_own_memory(opt):
    threads, n = 64, 20
    x, out = np.arange(100, 100 + n), np.zeros((threads, 4), np.int64)
    cuda.jit(own_memory, opt=opt)[1, threads](x, out, n)
    expected = np.zeros_like(out)
    for i in range(threads):
        own = [i + k for k in range(4)]
        expected[i, 0] = own[i & 3]
        own[i & 3] += 5
        expected[i, 1] = own[i & 3]
        expected[i, 2] = own[1] if i >= n else 100 + i
        own[1] += 7 if i >= n else 0
        expected[i, 3] = own[1]
    assert (out == expected).all()
    assert (x == np.arange(107, 107 + n)).all()
