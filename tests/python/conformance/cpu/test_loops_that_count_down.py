"""Loops that count down, and `while` loops with a counter: interchanged with the thread loop."""

import numpy as np
import pytest
from harness import run
from weft import _weft, cuda

SIZES = [(2, 5), (3, 1), (40, 300), (9, 64)]


def features(kernel):
    return {name for _, _, names in _weft.plan_features(kernel) for name in names}


@cuda.jit
def back_substitution(p, q, v):
    i = cuda.grid(1)
    if i < v.shape[1]:
        for j in range(v.shape[0] - 2, -1, -1):
            v[j, i] = p[j, i] * v[j + 1, i] + q[j, i]


@cuda.jit
def carried(p, q, v):
    i = cuda.grid(1)
    if i < v.shape[1]:
        value = v[v.shape[0] - 1, i]
        for j in range(v.shape[0] - 2, -1, -1):
            value = p[j, i] * value + q[j, i]
            v[j, i] = value


@cuda.jit
def to_a_limit(p, q, v):
    i = cuda.grid(1)
    limit = min(v.shape[0], 1) - 2
    if i < v.shape[1]:
        for j in range(v.shape[0] - 2, limit, -1):
            v[j, i] = p[j, i] * v[j + 1, i] + q[j, i]


KERNELS = [back_substitution, carried, to_a_limit]


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_recurrences_from_the_last_row_to_the_first(kernel, shape):
    p, q, v = np.random.default_rng(1).integers(-3, 4, (3, *shape))
    expected = v.copy()
    for j in range(shape[0] - 2, -1, -1):
        expected[j] = p[j] * expected[j + 1] + q[j]
    kernel[-(-shape[1] // 32), 32](p, q, v)
    np.testing.assert_array_equal(v, expected)


@pytest.mark.cpu
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_these_loops_are_interchanged(kernel):
    kernel[1, 32](*np.zeros((3, 4, 20), np.int64))
    names = features(kernel)
    assert {"loop-interchange", "counted-loop"} <= names
    assert "strip-mining" not in names


@cuda.jit
def to_the_least_integer(x, limit, start, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        for j in range(start, limit, -1):
            total = 3 * total + x[j - limit, i]
        out[i] = total


@pytest.mark.parametrize("limit", [-(2**63), -(2**63) + 1, 2**63 - 9])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_counters_near_the_ends_of_the_integers(limit, count):
    x, out = np.arange(8 * 40).reshape(8, 40), np.full(40, -1)
    to_the_least_integer[2, 32](x, limit, limit + count, out)
    expected = np.zeros(40, np.int64)
    for j in range(count, 0, -1):
        expected = 3 * expected + x[j]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def short(x, out):
    i = cuda.grid(1)
    if i < out.shape[1]:
        total = x[0, i]
        for j in range(4, 0, -1):
            total = total * x[j, i] + j
            out[j, i] = total


@pytest.mark.cpu
def test_a_loop_of_few_iterations_is_left_to_llvm():
    x = np.random.default_rng(2).integers(-3, 4, (5, 50))
    out, expected, total = np.zeros_like(x), np.zeros_like(x), x[0]
    for j in range(4, 0, -1):
        total = total * x[j] + j
        expected[j] = total
    short[2, 32](x, out)
    np.testing.assert_array_equal(out, expected)
    assert "loop-interchange" not in features(short)


@cuda.jit
def upwards(x, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        j = 0
        while j < x.shape[0]:
            total = 3 * total + x[j, i]
            j += 1
        out[i] = total * 100 + j


@cuda.jit
def downwards(x, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        j = x.shape[0] - 1
        while j >= 0:
            total = 3 * total + x[j, i]
            j -= 1
        out[i] = total * 100 + j


@cuda.jit
def with_continue(x, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        j = x.shape[0] - 1
        while j >= 0:
            if j % 3 == 1:
                j -= 2
                continue
            total = 3 * total + x[j, i]
            j -= 1
        out[i] = total * 100 + j


@pytest.mark.parametrize("rows", [0, 1, 2, 33])
@pytest.mark.parametrize("kernel", [upwards, downwards, with_continue], ids=lambda kernel: kernel.py_func.__name__)
def test_while_loops_with_a_counter(kernel, rows):
    x, out = np.random.default_rng(3).integers(-9, 9, (rows, 70)), np.zeros(70, np.int64)
    run(kernel, 3, 32, x, out)


@pytest.mark.cpu
def test_which_while_loops_have_an_induction_variable():
    for kernel in (upwards, downwards, with_continue):
        kernel[1, 32](np.zeros((3, 20), np.int64), np.zeros(20, np.int64))
        assert ({"while-induction", "loop-interchange"} <= features(kernel)) == (kernel is not with_continue)
