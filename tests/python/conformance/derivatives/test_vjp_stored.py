"""Adjoint kernels that store values: of loops without a constant bound, and of arrays that the kernel overwrites."""

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
def newton(x, n, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i] + 1.0
        for _ in range(n[i]):
            v = 0.5 * (v + math.sin(v) * x[i] / v)
        out[i] = v


@cuda.jit
def grown(x, out):
    """Values of several types: a float, an integer and a condition."""
    i = cuda.grid(1)
    if i < x.size:
        v, k, up = x[i] + 0.1, i, False
        while v < 50.0:
            v = v * v + 0.3 * k if up else v * (1.5 + x[i])
            up = v > 3.0
            k = (k * 7 + 1) % 5
        out[i] = v


@cuda.jit
def nested(x, n, m, out):
    """Loops in loops and branches, and one after the other."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for a in range(n[i]):
            w = v
            for _ in range(m):
                w = math.sin(w) + 0.1 * w * x[i]
            v = v * 0.5 + w * math.cos(v)
            if v > 0.3:
                for _ in range(a):
                    v = v - 0.1 * v * v
        u = v
        for _ in range(m):
            u = u * math.cos(u)
        out[i] = u


@cuda.jit
def block_of_threads(x, n, out):
    """Threads of a grid of three dimensions have their own memory."""
    i, j, k = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        v = x[i, j, k]
        for _ in range((i + 2 * j + 3 * k) % n):
            v = math.sin(v) * 1.5
        out[i, j, k] = v


@cuda.jit
def long_constant(x, out):
    """A constant bound, but too many values for a local array."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(500):
            v = v + 0.01 * math.sin(v)
        out[i] = v


@cuda.jit
def twice(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = math.sin(x[i])
        x[i] = math.exp(x[i]) * x[i]


@cuda.jit
def stepped(x, n):
    i = cuda.grid(1)
    if i < x.size:
        for _ in range(n):
            x[i] = math.sin(x[i]) * x[i] + 0.1


@cuda.jit
def relaxed(x, n):
    """Neighbors exchange values in global memory."""
    i = cuda.threadIdx.x
    for _ in range(n):
        v = 0.0
        if 0 < i < x.size - 1:
            v = x[i] + 0.1 * (x[i - 1] * x[i - 1] - 2 * x[i] * x[i + 1] + x[i + 1])
        cuda.syncthreads()
        if 0 < i < x.size - 1:
            x[i] = v
        cuda.syncthreads()


@cuda.jit
def recurrence(x):
    if cuda.grid(1) == 0:
        for i in range(1, x.size):
            x[i] = x[i] * math.sin(x[i - 1]) + x[i - 1]


@cuda.jit
def shared_steps(x, n, out):
    """Contents of shared memory that each iteration overwrites."""
    s = cuda.shared.array(64, np.float64)
    i = cuda.threadIdx.x
    s[i] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    for _ in range(n):
        v = s[i] * math.cos(s[(i + 1) % 64])
        cuda.syncthreads()
        s[i] = v + 0.1
        cuda.syncthreads()
    if i < x.size:
        out[i] = s[i]


@cuda.jit
def maxima(x, out):
    """Running maxima, by a function and by a branch."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        m, best, at = -1.0, -1.0, 0
        for k in range(x.shape[1]):
            m = max(m, x[i, k] * x[i, k])
            if x[i, k] > best:
                best = x[i, k]
                at = k
        s = 0.0
        for k in range(x.shape[1]):
            s += math.exp(x[i, k] - best)
        out[i] = m * s + x[i, at] * best


@cuda.jit
def under_a_condition(x, n, out):
    """Barriers that all threads of a block reach, or none."""
    s = cuda.shared.array(32, np.float64)
    i = cuda.threadIdx.x
    v = x[i]
    if n[cuda.blockIdx.x] > 1:
        for k in range(n[cuda.blockIdx.x]):
            s[i] = v
            cuda.syncthreads()
            v = math.sin(s[31 - i]) + 0.1 * v * k
            cuda.syncthreads()
    cuda.atomic.add(out, i, v)


COUNTS = np.arange(N) % 13
CASES = {
    "newton": (newton, 2, 32, (uniform(N), COUNTS, np.zeros(N)), ["out"]),
    "grown": (grown, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "nested": (nested, 2, 32, (uniform(N), COUNTS % 5, 9, np.zeros(N)), ["out"]),
    "block_of_threads": (block_of_threads, (2, 1, 3), (2, 4, 1), (uniform(3, 4, 3), 7, np.zeros((3, 4, 3))), ["out"]),
    "long_constant": (long_constant, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "twice": (twice, 2, 32, (uniform(N),), ["x"]),
    "stepped": (stepped, 2, 32, (uniform(N), 5), ["x"]),
    "relaxed": (relaxed, 1, 48, (uniform(N), 6), ["x"]),
    "recurrence": (recurrence, 1, 1, (uniform(N),), ["x"]),
    "maxima": (maxima, 1, 32, (uniform(30, 9), np.zeros(30)), ["out"]),
    "under_a_condition": (under_a_condition, 4, 32, (uniform(32), np.array([1, 2, 3, 0]), np.zeros(32)), ["out"]),
    "shared_steps": (shared_steps, 1, 64, (uniform(N), 4, np.zeros(N)), ["out"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    kernel, grid, block, args, outputs = CASES[case]
    # `grown` leaves its loop after another number of iterations near some points.
    check(kernel, grid, block, args, outputs, tolerance=1e-5 if case == "grown" else 1e-6)


def test_float32():
    x, out = uniform(N).astype(np.float32), np.zeros(N, np.float32)
    dx, dy = np.zeros(N, np.float32), np.ones(N, np.float32)
    cuda.vjp(newton)[2, 32](x, COUNTS, out, dx, dy)
    exact = np.zeros(N)
    cuda.vjp(newton)[2, 32](x.astype(float), COUNTS, np.zeros(N), exact, np.ones(N))
    np.testing.assert_allclose(dx, exact, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("place", [np.copy, cuda.to_device])
def test_strided_arrays_that_are_overwritten_keep_their_contents(place):
    memory = uniform(2 * N)
    x, dx = place(memory)[::-2], np.ones(2 * N)[::-2]
    cuda.vjp(stepped)[2, 32](x, 5, dx)
    plain = np.ones(N)
    cuda.vjp(stepped)[2, 32](np.ascontiguousarray(memory[::-2]), 5, plain)
    np.testing.assert_array_equal(dx, plain)
    np.testing.assert_array_equal(x.copy_to_host() if place is cuda.to_device else x, memory[::-2])


def test_a_tape_of_kernels_that_store():
    x, n, out = cuda.to_device(uniform(N)), cuda.to_device(COUNTS), cuda.to_device(np.zeros(N))
    with cuda.tape() as tape:
        newton[2, 32](x, n, out)
        stepped[2, 32](out, 5)
    tape.backward(out, np.ones(N))
    middle, dout, dx = np.zeros(N), np.ones(N), np.zeros(N)
    newton[2, 32](uniform(N), COUNTS, middle)
    cuda.vjp(stepped)[2, 32](middle, 5, dout)
    cuda.vjp(newton)[2, 32](uniform(N), COUNTS, middle, dx, dout)
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), dx)


def test_no_iterations_need_no_memory():
    x, dx = uniform(N), np.zeros(N)
    cuda.vjp(newton)[2, 32](x, np.zeros(N, np.int64), np.zeros(N), dx, np.ones(N))
    np.testing.assert_array_equal(dx, np.ones(N))


def test_too_much_memory_is_an_error_with_the_line():
    x, n = np.ones(1), np.full(1, 1_000_000)
    with pytest.raises(
        MemoryError, match=r"needs \d+ bytes of scratch memory, 8000000 for each of \d+ threads"
    ) as raised:
        cuda.vjp(newton)[1 << 10, 1024](x, n, np.zeros(1), np.zeros(1), np.ones(1))
    assert "the reverse sweep needs `v` of each iteration" in str(raised.value)


def test_a_graph_does_not_record_it():
    x, n, out, dx, dy = map(cuda.to_device, (uniform(N), COUNTS, np.zeros(N), np.zeros(N), np.ones(N)))
    bwd = cuda.vjp(newton)
    bwd[2, 32](x, n, out, dx, dy)
    with cuda.graph(), pytest.raises(RuntimeError, match="which a graph cannot record"):
        bwd[2, 32](x, n, out, dx, dy)


def test_its_explanation_names_the_value():
    bwd = cuda.vjp(newton)
    text = bwd.explain(uniform(N), COUNTS, np.zeros(N))
    assert "scratch memory" in text
    assert "needs `v` of each iteration" in text
    text = cuda.vjp(twice).explain(uniform(N))
    assert "copies of `x`" in text


@cuda.jit
def until_a_sum(x, out):
    s = cuda.shared.array(1, np.float64)
    i = cuda.threadIdx.x
    if i == 0:
        s[0] = 1.0
    cuda.syncthreads()
    cuda.atomic.add(s, 0, x[i])
    cuda.syncthreads()
    v = x[i]
    while v < s[0]:
        v = v * v + 1.0
    out[i] = v


def test_trip_counts_that_depend_on_the_order_of_threads_are_errors():
    x = uniform(8)
    with pytest.raises(CompileError, match="a trip count depends on the sum, whose rounding"):
        cuda.vjp(until_a_sum)[1, 8](x, np.zeros(8), np.zeros(8), np.ones(8))


def test_fastmath_and_reproducible_kernels_that_store():
    dx = {}
    for name, options in {"plain": {}, "fastmath": {"fastmath": True}, "reproducible": {"reproducible": True}}.items():
        kernel = cuda.jit(newton.py_func, **options)
        dx[name] = np.zeros(N)
        cuda.vjp(kernel)[2, 32](uniform(N), COUNTS, np.zeros(N), dx[name], np.ones(N))
        np.testing.assert_array_equal(dx[name], dx["plain"])
