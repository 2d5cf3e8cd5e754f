"""Running maxima and minima, which take no memory for their values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check
from weft import cuda


@cuda.jit
def largest(x, y):
    i = cuda.grid(1)
    if i < y.size:
        m = -math.inf
        for k in range(x.shape[1]):
            m = max(m, x[i, k] * x[i, k] - x[i, 0])
        y[i] = m * m


@cuda.jit
def softmax(x, y):
    """Rows of any length: the maximum, the sum, and the quotients."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        m = x[i, 0]
        for k in range(1, x.shape[1]):
            m = max(x[i, k], m)
        total = 0.0
        for k in range(x.shape[1]):
            total += math.exp(x[i, k] - m)
        for k in range(x.shape[1]):
            y[i, k] = math.exp(x[i, k] - m) / total + 0.1 * m


@cuda.jit
def both(x, n, low, high):
    """Two variables of a loop; trip counts differ, also 0."""
    i = cuda.grid(1)
    if i < low.size:
        a, b = x[i, 0], 10.0
        for k in range(n[i]):
            v = math.sin(x[i, k] * 3.0)
            a = max(a, v)
            b = min(v * x[i, 1], b)
        low[i] = a + b * a
        high[i] = b


@cuda.jit
def smallest_of_largest(x, y):
    """A loop in a loop; the result of the inner one is the term of the outer one."""
    i = cuda.grid(1)
    if i < y.size:
        lowest = math.inf
        total = 0.0
        for a in range(x.shape[1]):
            m = x[i, a]
            for b in range(x.shape[1]):
                m = max(m, x[i, b] * x[i, a])
            lowest = min(lowest, m * m)
            total = math.sin(total + m)
        y[i] = lowest + total


@cuda.jit
def used(x, y):
    """The loop also uses the variable: its values are stored."""
    i = cuda.grid(1)
    if i < y.size:
        m, s = 0.0, 0.0
        for k in range(x.shape[1]):
            m = max(m, x[i, k])
            s = s * 0.5 + m * m
        y[i] = s


@cuda.jit
def in_a_branch(x, y):
    i = cuda.grid(1)
    if i < y.size:
        m = 0.1
        for k in range(x.shape[1]):
            if x[i, k] < 0.8:
                m = max(m, x[i, k] * 2.0)
        y[i] = m


@cuda.jit
def largest_by_branch(x, y):
    """With the index of the largest term, which has no derivative."""
    i = cuda.grid(1)
    if i < y.size:
        m, best = -math.inf, 0
        for k in range(x.shape[1]):
            v = x[i, k] * x[i, k] - x[i, 0]
            if v > m:
                m = v
                best = k
        y[i] = m * m + x[i, best]


@cuda.jit
def both_by_branch(x, n, low, high):
    i = cuda.grid(1)
    if i < low.size:
        a, b = x[i, 0], 10.0
        for k in range(n[i]):
            v = math.sin(x[i, k] * 3.0)
            w = v * x[i, 1]
            if v >= a:
                a = v
            if b >= w:
                b = w
        low[i] = a + b * a
        high[i] = b


@cuda.jit
def sums_by_branch(x, y):
    """The branch computes another value with a derivative, so that the maxima are stored."""
    i = cuda.grid(1)
    if i < y.size:
        m, s = 0.0, 0.0
        for k in range(x.shape[1]):
            v = x[i, k]
            if v > m:
                m = v
                s = s * s + m
        y[i] = m + s


def drawn(*shape):
    return np.random.default_rng(5).standard_normal(shape)


CASES = [
    (largest, [drawn(9, 12), np.zeros(9)], ["y"]),
    (softmax, [drawn(7, 33), np.zeros((7, 33))], ["y"]),
    (both, [drawn(12, 11), np.arange(12), np.zeros(12), np.zeros(12)], ["low", "high"]),
    (smallest_of_largest, [drawn(6, 9), np.zeros(6)], ["y"]),
    (used, [drawn(6, 9), np.zeros(6)], ["y"]),
    (in_a_branch, [drawn(6, 9), np.zeros(6)], ["y"]),
    (largest_by_branch, [drawn(9, 12), np.zeros(9)], ["y"]),
    (both_by_branch, [drawn(12, 11), np.arange(12), np.zeros(12), np.zeros(12)], ["low", "high"]),
    (sums_by_branch, [drawn(6, 9), np.zeros(6)], ["y"]),
]


@pytest.mark.parametrize(("kernel", "args", "outputs"), CASES)
def test_gradients_are_those_of_differences(kernel, args, outputs):
    check(kernel, 1, 32, args, outputs)


@pytest.mark.parametrize(
    "kernel", [largest, softmax, both, smallest_of_largest, largest_by_branch, both_by_branch, sums_by_branch]
)
def test_only_other_values_are_stored(kernel):
    args = next(args for of, args, _ in CASES if of is kernel)
    said = cuda.vjp(kernel).explain(*args)
    # The sum of sines of the outer loop is stored.
    assert ("scratch memory" in said) == (kernel in (smallest_of_largest, sums_by_branch))


@cuda.jit
def chain(x, first, y):
    m = first[0]
    for k in range(x.size):
        m = max(m, x[k])
    y[0] = m


VALUES = [
    [1.0, 3.0, 2.0, 3.0, 3.0],
    [5.0, 1.0, 5.0, 5.0],
    [3.0],
    [2.0],
    [1.0, 1.0],
    [-math.inf, -math.inf],
    [4.0, 4.0, 5.0],
]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("first", [3.0, 0.0, -math.inf])
def test_ties_are_those_of_each_maximum(values, first):
    """Half for each operand of each maximum."""
    expected, adjoint = np.zeros(len(values)), 1.0
    before = [first]
    for value in values:
        before.append(max(before[-1], value))
    for k in reversed(range(len(values))):
        share = 0.5 if before[k] == values[k] else float(values[k] > before[k])
        expected[k], adjoint = adjoint * share, adjoint * (1 - share)
    x = np.array(values)
    dx, dfirst, dy = np.zeros_like(x), np.zeros(1), np.ones(1)
    cuda.vjp(chain)[1, 1](x, np.array([first]), np.zeros(1), dx, dfirst, dy)
    cuda.synchronize()
    assert dx.tolist() == expected.tolist()
    assert dfirst.tolist() == [adjoint]


@cuda.jit
def chain_of_branches(x, first, y):
    m = first[0]
    for k in range(x.size):
        if x[k] > m:
            m = x[k]
    y[0] = m


@cuda.jit
def chain_of_last_terms(x, first, y):
    m = first[0]
    for k in range(x.size):
        if m <= x[k]:
            m = x[k]
    y[0] = m


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("first", [3.0, 0.0, -math.inf])
@pytest.mark.parametrize("kernel", [chain_of_branches, chain_of_last_terms])
def test_ties_of_branches_are_those_of_the_kernel(values, first, kernel):
    """The whole derivative is that of the term which the kernel assigned last."""
    m, expected, of_first = first, np.zeros(len(values)), 1.0
    for k, value in enumerate(values):
        if value > m or (value == m and kernel is chain_of_last_terms):
            m, of_first = value, 0.0
            expected[:] = 0.0
            expected[k] = 1.0
    x = np.array(values)
    dx, dfirst, dy = np.zeros_like(x), np.zeros(1), np.ones(1)
    cuda.vjp(kernel)[1, 1](x, np.array([first]), np.zeros(1), dx, dfirst, dy)
    cuda.synchronize()
    assert dx.tolist() == expected.tolist()
    assert dfirst.tolist() == [of_first]
