"""Adjoint kernels of loops in loops that overwrite elements whose old values derivatives need."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check
from weft import cuda
from weft.errors import CompileError

N = 40


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit
def gauss_seidel(a, b, steps):
    """Each thread has a row of an argument, in which sweeps use elements that the same sweep has overwritten."""
    i = cuda.grid(1)
    if i < a.shape[0]:
        for _ in range(steps):
            for k in range(1, a.shape[1] - 1):
                a[i, k] = math.sin(a[i, k - 1] * a[i, k]) + 0.3 * a[i, k + 1] * b[k]


@cuda.jit
def shared_smoothing(x, steps, out):
    """Nonlinear smoothing of a tile between barriers; each thread has several elements."""
    tile = cuda.shared.array(64, np.float64)
    tid, threads = cuda.threadIdx.x, cuda.blockDim.x
    for k in range(tid, x.size, threads):
        tile[k] = x[k]
    cuda.syncthreads()
    for _ in range(steps):
        for parity in range(2):
            for k in range(2 * tid + parity, x.size, 2 * threads):
                left = tile[k - 1] if k > 0 else 0.2
                right = tile[k + 1] if k < x.size - 1 else 0.4
                tile[k] = 0.5 * tile[k] + 0.4 * math.tanh(left * right)
            cuda.syncthreads()
    for k in range(tid, x.size, threads):
        out[k] = tile[k]


@cuda.jit
def table(cost, d):
    """Dynamic programming along anti-diagonals of a table that the kernel reads and writes."""
    n, tid = cost.shape[0], cuda.threadIdx.x
    for diagonal in range(2 * n - 1):
        for i in range(tid, n, cuda.blockDim.x):
            j = diagonal - i
            if 0 <= j < n:
                up = d[i, j + 1]
                left = d[i + 1, j]
                corner = d[i, j]
                least = -math.log(math.exp(-up) + math.exp(-left) + math.exp(-corner))
                d[i + 1, j + 1] = cost[i, j] * (1.0 + 0.1 * least) + least
        cuda.syncthreads()


@cuda.jit
def three_deep(x, n, out):
    """Three loops around an update of a local array, with trip counts and conditions that differ."""
    i = cuda.grid(1)
    if i < x.size:
        q = cuda.local.array(6, np.float64)
        for k in range(6):
            q[k] = x[i] + 0.1 * k
        for a in range(n[i]):
            for b in range(a % 3 + 1):
                q[b] = q[b] * 0.9 + 0.1 * x[i]
                for k in range(b, 6):
                    if (k + a) % 3 != 1:
                        q[k] = math.sin(q[k]) + 0.2 * q[(k + 1) % 6] * q[b]
            if q[a % 6] > 0.7:
                for k in range(2):
                    q[k] *= q[k + 1]
        out[i] = q[0] + q[1] * q[2] + q[3] * q[5]


@cuda.jit
def sorted_rows(x, w, out):
    """A sort of floats in a local array, and loops that leave early."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        q = cuda.local.array(9, np.float64)
        for k in range(9):
            q[k] = x[i, k] * x[i, k]
        for k in range(1, 9):
            j = k
            while j > 0 and q[j - 1] > q[j]:
                q[j - 1], q[j] = q[j], q[j - 1]
                j -= 1
        s = 0.0
        for k in range(9):
            s += w[k] * q[k] * q[k]
        out[i] = s


@cuda.jit
def of_two_types(x, y, steps):
    """float32 and float64 elements, and an integer of shared memory, in the records of one loop."""
    tile = cuda.shared.array(32, np.float32)
    order = cuda.shared.array(32, np.int8)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    order[i] = (i * 5) % 32
    cuda.syncthreads()
    for t in range(steps):
        for k in range(2):
            at = order[i]
            value = tile[at] * y[i]
            y[i] = 0.5 * y[i] + 0.2 * value
            cuda.syncthreads()
            tile[i] = value + 0.3
            order[i] = (at + t + k) % 32
            cuda.syncthreads()


@cuda.jit
def with_indices(x, index, steps):
    """The kernel also overwrites the integers by which it scales and gathers."""
    i = cuda.grid(1)
    if i < x.size:
        for _ in range(steps):
            for _ in range(2):
                x[i] = math.sin(x[i]) * (0.5 + 0.1 * index[i])
                index[i] = (index[i] * 3 + 1) % 7


@cuda.jit
def summed(x, steps, out):
    """A loop that only adds, between loops that overwrite what it adds."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = 0.0
        for _ in range(steps):
            for k in range(x.shape[1]):
                total += x[i, k] * x[i, k]
            for k in range(x.shape[1]):
                x[i, k] = x[i, k] * (0.9 - 0.1 * x[i, k - 1])
        out[i] = total


@cuda.jit
def in_turn(x, out):
    """The inner loop writes the elements in turn. An iteration reads one that another iteration wrote, whose old value
    the iterations of the outer loop find again, but not those of the inner loop."""
    i = cuda.grid(1)
    if i < x.size:
        q = cuda.local.array(3, np.float64)
        for k in range(3):
            q[k] = 0.5 + 0.1 * k
        for _ in range(10):
            for k in range(9):
                q[k % 3] = 0.9 * q[k % 3] + 0.1
                out[i] += q[1] * x[i]


COUNTS = np.arange(N) % 7
CASES = {
    "gauss_seidel": (gauss_seidel, 2, 4, (uniform(7, 12), uniform(12), 5), ["a"]),
    "shared_smoothing": (shared_smoothing, 1, 16, (uniform(61), 4, np.zeros(61)), ["out"]),
    "table": (table, 1, 8, (uniform(11, 11), np.full((12, 12), 0.5)), ["d"]),
    "three_deep": (three_deep, 2, 32, (uniform(N), COUNTS, np.zeros(N)), ["out"]),
    "sorted_rows": (sorted_rows, 1, 32, (uniform(20, 9), uniform(9), np.zeros(20)), ["out"]),
    "of_two_types": (of_two_types, 1, 32, (uniform(32), uniform(33)[1:], 3), ["y"]),
    "with_indices": (with_indices, 2, 32, (uniform(N), COUNTS, 4), ["x"]),
    "in_turn": (in_turn, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "summed": (summed, 1, 16, (uniform(10, 6), 3, np.zeros(10)), ["out", "x"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    kernel, grid, block, args, outputs = CASES[case]
    # A part of the values of `of_two_types` is rounded to float32.
    check(kernel, grid, block, args, outputs, tolerance=2e-2 if case == "of_two_types" else 1e-6)


def test_its_explanation_names_the_value():
    report = cuda.vjp(gauss_seidel).explain(uniform(7, 12), uniform(12), 5)
    assert "each launch takes scratch memory for values of loops, which another launch counts first" in report
    assert "each launch takes copies of `a`, whose elements the kernel overwrites" in report
    assert "the reverse sweep needs this value again, but the kernel overwrites elements of `a`" in report


def test_a_second_derivative_has_no_memory():
    args = (uniform(N), COUNTS, np.zeros(N))
    adjoints = (np.zeros(N), np.ones(N))
    message = "the reverse sweep needs this element of `q` of each iteration, but the trip count has no constant bound"
    with pytest.raises(CompileError, match=message) as raised:
        cuda.vjp(cuda.vjp(three_deep))[2, 32](*args, *adjoints, *adjoints, *adjoints)
    assert "test_vjp_overwritten.py" in str(raised.value)
