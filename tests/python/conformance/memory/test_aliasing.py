"""Arguments that overlap or have unusual addresses: on a GPU, a kernel has a variant for disjoint, aligned arrays, and
one for others. A single thread runs, so that loads and stores are in program order. The reference is CPython with NumPy
views."""

import numpy as np
import pytest
from weft import cuda


@cuda.jit
def prefix(x, y, n):
    """A stored value is loaded again in the next iteration if the two arrays overlap."""
    for i in range(n):
        y[i + 1] = x[i] + y[i] * 2
    y[0] = x[0] + x[n - 1]


@cuda.jit
def invariant(x, y, n):
    """Loads that are loop-invariant if no store changes them."""
    for i in range(n):
        y[i] = y[i] + x[0] * 3 + x[1]


@cuda.jit
def neighbours(x, y, n):
    """Contiguous loads and stores."""
    for i in range(0, n, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        y[i] = a + d
        y[i + 1] = b - x[i]
        y[i + 2] = c + x[i + 1]
        y[i + 3] = d - x[i + 2]


@cuda.jit
def three(x, y, out, n):
    for i in range(n):
        out[i] = x[i] + y[n - 1 - i]
        out[n - 1 - i] = x[n - 1] + y[0]


SIZE = 40
N = 16

# Slices of 40 elements: the read one and the written one.
VIEWS = {
    "apart": (np.s_[:20], np.s_[20:]),
    "side by side": (np.s_[20:], np.s_[:20]),
    "the same": (np.s_[:], np.s_[:]),
    "by one element": (np.s_[:20], np.s_[19:]),
    "by one element, after": (np.s_[19:], np.s_[:20]),
    "shifted by one": (np.s_[1:], np.s_[:-1]),
    "shifted by one, after": (np.s_[:-1], np.s_[1:]),
    "shifted by four": (np.s_[4:], np.s_[:-4]),
    "between each other": (np.s_[::2], np.s_[1::2]),
    "against each other": (np.s_[::-1], np.s_[:]),
    "backwards": (np.s_[19::-1], np.s_[:19:-1]),
    "misaligned": (np.s_[1:20], np.s_[21:]),
    "one misaligned": (np.s_[:20], np.s_[21:]),
}
DTYPES = ["uint8", "int32", "float32", "float64"]


def compare(kernel, memory, views, *rest):
    """Launches on views of one host array and of one device array, and compares with CPython."""
    expected = memory.copy()
    with np.errstate(over="ignore"):
        kernel.py_func(*views(expected), *rest)
    mine = memory.copy()
    kernel[1, 1](*views(mine), *rest)
    np.testing.assert_array_equal(mine, expected)
    there = cuda.to_device(memory)
    kernel[1, 1](*views(there), *rest)
    np.testing.assert_array_equal(there.copy_to_host(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("kernel", [prefix, invariant, neighbours], ids=lambda kernel: kernel.__name__)
def test_two_views(kernel, views, dtype):
    read, written = VIEWS[views]
    memory = (np.arange(SIZE) % 3 + 1).astype(dtype)
    compare(kernel, memory, lambda memory: (memory[read], memory[written]), N)


@pytest.mark.parametrize("views", VIEWS)
def test_three_views(views):
    read, written = VIEWS[views]
    memory = np.arange(SIZE, dtype=np.int64)
    compare(three, memory, lambda memory: (memory[read], memory[read], memory[written]), N)
    compare(three, memory, lambda memory: (memory[read], memory[written], memory[written]), N)


@cuda.jit
def turned(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1


def test_transposed_views():
    memory = np.arange(36, dtype=np.float32).reshape(6, 6)
    compare(turned, memory, lambda memory: (memory, memory.T))
    compare(turned, memory, lambda memory: (memory.T, memory))
    # Blocks of columns, each in the gaps of the other, and overlapping submatrices.
    compare(turned, memory, lambda memory: (memory[:, :3], memory[:, 3:]))
    compare(turned, memory, lambda memory: (memory[1:, 1:], memory[:-1, :-1]))


@cuda.jit
def of_records(r, rows, out, n):
    for i in range(n):
        rows[i].a = r.a + r.b
        out[i] = r.a


def test_a_record_of_an_array_that_is_written():
    rows = np.zeros(4, [("a", "f4"), ("b", "f4")])
    rows["a"], rows["b"] = np.arange(4), 2
    for place in range(4):
        expected, out = rows.copy(), np.zeros(4, np.float32)
        of_records.py_func(expected[place : place + 1].view(np.recarray)[0], expected.view(np.recarray), out, 4)
        there, found = cuda.to_device(rows), cuda.to_device(np.zeros(4, np.float32))
        of_records[1, 1](there[place], there, found, 4)
        np.testing.assert_array_equal(there.copy_to_host(), expected)
        np.testing.assert_array_equal(found.copy_to_host(), out)


@cuda.jit
def of_fields(a, b, n):
    for i in range(n - 1):
        b[i + 1] = a[i] + b[i]
        b[0] = a[i + 1]


def test_fields_of_records():
    rows = np.zeros(8, [("a", "i4"), ("b", "i4")])
    rows["a"], rows["b"] = np.arange(8), 3

    def fields(rows):
        return rows["a"], rows["b"]

    compare(of_fields, rows, fields, 8)
    compare(of_fields, rows, lambda rows: (rows["a"], rows["a"]), 8)


@cuda.jit
def of_tuples(pair, out, n):
    for i in range(n):
        out[i] = pair[0][i] - pair[1][n - 1 - i]


@pytest.mark.parametrize("views", VIEWS)
def test_arrays_in_tuples(views):
    read, written = VIEWS[views]
    memory = np.arange(SIZE, dtype=np.int32)
    compare(of_tuples, memory, lambda memory: ((memory[read], memory[written]), memory[written]), N)


@cuda.jit
def across(x, out):
    """Threads of a block read elements that others have written, through either argument."""
    i = cuda.threadIdx.x
    out[i] = x[i] + 1
    cuda.syncthreads()
    mine = x[i ^ 1]
    cuda.syncthreads()
    out[i] = mine + out[i]


def test_threads_that_meet_see_what_others_wrote():
    memory = np.arange(64, dtype=np.int32)
    swapped = np.arange(64) ^ 1
    for same in [True, False]:
        x = cuda.to_device(memory)
        out = x if same else cuda.to_device(np.zeros(64, np.int32))
        across[1, 64](x, out)
        first = memory + 1
        expected = (first[swapped] if same else memory[swapped]) + first
        np.testing.assert_array_equal(out.copy_to_host(), expected)
