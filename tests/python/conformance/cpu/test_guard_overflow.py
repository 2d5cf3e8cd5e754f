"""Comparisons of an index plus a constant: a guard of a whole kernel wraps like any arithmetic."""

import numpy as np
import pytest
from weft import cuda

LARGEST = 2**63 - 1


@cuda.jit
def less(out, c, bound):
    i = cuda.grid(1)
    if i + c < bound:
        out[i] = 1


@cuda.jit
def greater(out, c, bound):
    i = cuda.grid(1)
    if i + c > bound:
        out[i] = 1


@cuda.jit
def equal(out, c, bound):
    i = cuda.grid(1)
    if i + c == bound:
        out[i] = 1


@cuda.jit
def early(out, c, bound):
    i = cuda.grid(1)
    if i - c > bound:
        return
    out[i] = 1


@cuda.jit
def both(out, c, bound):
    i = cuda.grid(1)
    if i + c < bound and i - c >= bound:
        out[i] = 1


@cuda.jit
def after_a_barrier(out, c, bound):
    i = cuda.grid(1)
    if i + c < bound:
        cuda.syncthreads()
        out[i] = 1


def wrapped(value):
    return (value + 2**63) % 2**64 - 2**63


TESTS = {
    "less": (less, lambda i, c, b: wrapped(i + c) < b),
    "greater": (greater, lambda i, c, b: wrapped(i + c) > b),
    "equal": (equal, lambda i, c, b: wrapped(i + c) == b),
    "early": (early, lambda i, c, b: wrapped(i - c) <= b),
    "both": (both, lambda i, c, b: wrapped(i + c) < b and wrapped(i - c) >= b),
    "after_a_barrier": (after_a_barrier, lambda i, c, b: wrapped(i + c) < b),
}


@pytest.mark.parametrize("name", TESTS)
def test_guards_wrap(name):
    kernel, passes = TESTS[name]
    edges = [0, 5, -5, LARGEST, -LARGEST - 1, LARGEST - 7, -LARGEST + 7]
    for c in edges:
        for bound in [*edges, LARGEST - 12, -LARGEST + 4]:
            out = np.zeros(16, np.int64)
            kernel[2, 8](out, c, bound)
            assert out.tolist() == [int(passes(i, c, bound)) for i in range(16)], (c, bound)
