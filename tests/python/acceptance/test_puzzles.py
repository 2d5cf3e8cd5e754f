"""Solutions of fourteen puzzles about GPU programming: kernels are inner functions that are jitted when they are used.

Each puzzle is a function that takes the module `cuda` and returns a kernel with annotations, so that `cuda` is a
closure variable. Arguments are int64 arrays and Python ints. `TPB` changes between the puzzles.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import weft as numba

TPB = 4


@dataclass
class Problem:
    """A puzzle with its inputs, its launch and its expected result."""

    puzzle: object
    inputs: list
    shape: tuple
    expected: object
    args: tuple = ()
    blocks: tuple = (1, 1)
    threads: tuple = (1, 1)

    def check(self):
        kernel = numba.cuda.jit(self.puzzle(numba.cuda))
        out = np.zeros(self.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
            kernel[self.blocks, self.threads](out, *self.inputs, *self.args)
        np.testing.assert_array_equal(out, self.expected)


def map_add(cuda):
    def call(out, a) -> None:
        i = cuda.threadIdx.x
        out[i] = a[i] + 10

    return call


def zip_add(cuda):
    def call(out, a, b) -> None:
        i = cuda.threadIdx.x
        out[i] = a[i] + b[i]

    return call


def guarded(cuda):
    def call(out, a, size) -> None:
        i = cuda.threadIdx.x
        if i < size:
            out[i] = a[i] + 10

    return call


def map_2d(cuda):
    def call(out, a, size: int) -> None:
        i, j = cuda.threadIdx.x, cuda.threadIdx.y
        if i < size and j < size:
            out[i, j] = a[i, j] + 10

    return call


def broadcast(cuda):
    def call(out, a, b, size) -> None:
        i = cuda.threadIdx.x
        j = cuda.threadIdx.y
        if i < size and j < size:
            out[i, j] = a[i, 0] + b[0, j]

    return call


def in_blocks(cuda):
    def call(out, a, size) -> None:
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < size:
            out[i] = a[i] + 10

    return call


def in_blocks_2d(cuda):
    def call(out, a, size) -> None:
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        j = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        if i < size and j < size:
            out[i, j] = a[i, j] + 10

    return call


def through_shared(cuda):
    def call(out, a, size) -> None:
        shared = cuda.shared.array(TPB, numba.float32)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        local_i = cuda.threadIdx.x
        if i < size:
            shared[local_i] = a[i]
            cuda.syncthreads()
            out[i] = shared[local_i] + 10

    return call


def pooling(cuda):
    def call(out, a, size) -> None:
        shared = cuda.shared.array(TPB, numba.float32)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        local_i = cuda.threadIdx.x
        if i < size:
            shared[local_i] = a[i]
            cuda.syncthreads()
            total = 0
            for back in range(min(local_i + 1, 3)):
                total += shared[local_i - back]
            out[i] = total

    return call


def dot(cuda):
    def call(out, a, b, size) -> None:
        shared = cuda.shared.array(TPB, numba.float32)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        local_i = cuda.threadIdx.x
        if i >= size:
            return
        shared[local_i] = a[i] * b[i]
        cuda.syncthreads()
        if local_i == 0:
            total = 0.0
            for k in range(size):
                total += shared[k]
            out[0] = total

    return call


MAX_CONV = 4
TPB_MAX_CONV = 12


def convolution(cuda):
    def call(out, a, b, a_size, b_size) -> None:
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        local_i = cuda.threadIdx.x
        signal = cuda.shared.array(TPB_MAX_CONV, numba.float32)
        taps = cuda.shared.array(MAX_CONV, numba.float32)
        if i < a_size:
            signal[local_i] = a[i]
        if local_i < b_size:
            taps[local_i] = b[local_i]
        else:
            ahead = local_i - b_size
            if i - b_size + TPB < a_size and ahead < b_size:
                signal[TPB + ahead] = a[i - b_size + TPB]
        cuda.syncthreads()
        acc = 0
        for k in range(b_size):
            if i + k < a_size:
                acc += signal[local_i + k] * taps[k]
        if i < a_size:
            out[i] = acc

    return call


def block_sum(cuda):
    def call(out, a, size: int) -> None:
        cache = cuda.shared.array(TPB, numba.float32)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        local_i = cuda.threadIdx.x
        if i < size:
            cache[local_i] = a[i]
        else:
            cache[local_i] = 0
        cuda.syncthreads()
        p = 2
        while p <= TPB:
            if local_i % p == 0:
                cache[local_i] += cache[local_i + p // 2]
            cuda.syncthreads()
            p *= 2
        if local_i == 0:
            out[cuda.blockIdx.x] = cache[0]

    return call


def axis_sum(cuda):
    def call(out, a, size: int) -> None:
        cache = cuda.shared.array(TPB, numba.float32)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        local_i = cuda.threadIdx.x
        batch = cuda.blockIdx.y
        if i >= size:
            return
        cache[local_i] = a[batch, i]
        cuda.syncthreads()
        if local_i == 0:
            total = 0
            for k in range(size):
                total += cache[k]
            out[batch, 0] = total

    return call


def product(cuda):
    def call(out, a, b, size: int) -> None:
        a_shared = cuda.shared.array((TPB, TPB), numba.float32)
        b_shared = cuda.shared.array((TPB, TPB), numba.float32)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        j = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        local_i = cuda.threadIdx.x
        local_j = cuda.threadIdx.y
        acc = 0
        for k in range(0, size, TPB):
            if i < size and k + local_j < size:
                a_shared[local_i, local_j] = a[i, k + local_j]
            if j < size and k + local_i < size:
                b_shared[local_i, local_j] = b[k + local_i, j]
            cuda.syncthreads()
            for local_k in range(min(TPB, size - k)):
                acc += a_shared[local_i, local_k] * b_shared[local_k, local_j]
            cuda.syncthreads()
        if i < size and j < size:
            out[i, j] = acc

    return call


def rebind(name, value):
    globals()[name] = value


def problem(name):
    """The problem of this name, with its value of `TPB`."""
    four, nine = np.arange(4), np.arange(9)
    two = np.arange(4).reshape(2, 2)
    if name in ("map", "zip", "guard"):
        return {
            "map": Problem(map_add, [four], (4,), four + 10, threads=(4, 1)),
            "zip": Problem(zip_add, [four, four], (4,), four * 2, threads=(4, 1)),
            "guard": Problem(guarded, [four], (4,), four + 10, (4,), threads=(8, 1)),
        }[name]
    if name == "map 2D":
        return Problem(map_2d, [two], (2, 2), two + 10, (2,), threads=(3, 3))
    if name == "broadcast":
        column, row = np.arange(2).reshape(2, 1), np.arange(2).reshape(1, 2)
        return Problem(broadcast, [column, row], (2, 2), column + row, (2,), threads=(3, 3))
    if name == "blocks":
        return Problem(in_blocks, [nine], (9,), nine + 10, (9,), (3, 1), (4, 1))
    if name == "blocks 2D":
        ones = np.ones((5, 5))
        return Problem(in_blocks_2d, [ones], (5, 5), ones + 10, (5,), (2, 2), (3, 3))
    if name == "shared":
        rebind("TPB", 4)
        return Problem(through_shared, [np.ones(8)], (8,), np.full(8, 11.0), (8,), (2, 1), (TPB, 1))
    rebind("TPB", 8)
    eight = np.arange(8)
    if name == "pooling":
        expected = [max(i - 2, 0) + max(i - 1, 0) + i for i in range(8)]
        return Problem(pooling, [eight], (8,), expected, (8,), (1, 1), (TPB, 1))
    if name == "dot":
        return Problem(dot, [eight, eight], (1,), [eight @ eight], (8,), (1, 1), (TPB, 1))
    if name.startswith("convolution"):
        n, taps = (6, 3) if name == "convolution" else (15, 4)
        a, b = np.arange(n), np.arange(taps)
        expected = np.convolve(a, b[::-1])[taps - 1 :]
        blocks = (1, 1) if n <= TPB else (2, 1)
        return Problem(convolution, [a, b], (n,), expected, (n, taps), blocks, (TPB, 1))
    if name.startswith("block sum"):
        n = 8 if name == "block sum" else 15
        a = np.arange(n)
        sums = [a[:8].sum(), a[8:].sum()][: (n + 7) // 8]
        return Problem(block_sum, [a], (len(sums),), sums, (n,), (len(sums), 1), (TPB, 1))
    if name == "axis sum":
        a = np.arange(24).reshape(4, 6)
        return Problem(axis_sum, [a], (4, 1), a.sum(axis=1, keepdims=True), (6,), (1, 4), (TPB, 1))
    rebind("TPB", 3)
    size = 2 if name == "product" else 8
    a = np.arange(size * size).reshape(size, size)
    blocks = (1, 1) if size == 2 else (3, 3)
    # The second operand is a transposed view, in Fortran order.
    return Problem(product, [a, a.T], (size, size), a @ a.T, (size,), blocks, (TPB, TPB))


@pytest.mark.parametrize(
    "name",
    [
        "map", "zip", "guard", "map 2D", "broadcast", "blocks", "blocks 2D", "shared", "pooling", "dot", "convolution",
        "convolution of two blocks", "block sum", "block sum of two blocks", "axis sum", "product",
        "product of nine blocks",
    ],
)  # fmt: skip
def test_puzzle(name):
    problem(name).check()
