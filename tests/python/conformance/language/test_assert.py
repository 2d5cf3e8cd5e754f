"""A thread whose assertion fails ends, wherever the assertion occurs."""

import numpy as np
from harness import assert_exact, launch
from weft import cuda


@cuda.jit(device=True)
def twice(x):
    assert x != 3
    return 2 * x


@cuda.jit(device=True)
def through(x):
    return twice(x) + 1


@cuda.jit(device=True)
def only_checks(x):
    assert x > 1, "too small"


@cuda.jit(device=True)
def pair(a, x):
    if x == 2:
        assert x > a[0]
    return a[1:], (x, 1.5)


@cuda.jit
def called(r):
    i = cuda.grid(1)
    r[i] = -1
    r[i] = twice(i) + 1


@cuda.jit
def called_deep(r):
    i = cuda.grid(1)
    r[i] = -1
    for k in range(2):
        r[i] = through(i + k)


@cuda.jit
def without_a_result(r):
    i = cuda.grid(1)
    r[i] = -1
    only_checks(i)
    r[i] = i


@cuda.jit
def several_results(r, a):
    i = cuda.grid(1)
    r[i] = -1
    v, (x, f) = pair(a, i)
    r[i] = v[0] + x * f


@cuda.jit
def in_an_operand(r):
    i = cuda.grid(1)
    r[i] = -1
    if i > 1 and twice(i) > 4:
        r[i] = 5
    else:
        r[i] = twice(7) if i == 0 else twice(i + 2)


@cuda.jit
def before_a_barrier(r):
    tile = cuda.shared.array(8, np.int64)
    i = cuda.threadIdx.x
    r[i] = -1
    tile[i] = through(i)
    cuda.syncthreads()
    r[i] = tile[i] + tile[0]


def test_a_function_ends_the_thread_that_called_it():
    (r,) = launch(called, 1, 5, np.zeros(5, np.int64))
    assert r.tolist() == [1, 3, 5, -1, 9]


def test_a_function_that_was_called_by_a_function_does_too():
    (r,) = launch(called_deep, 1, 5, np.zeros(5, np.int64))
    assert r.tolist() == [3, 5, 5, -1, 11]


def test_functions_with_no_and_with_several_results():
    (r,) = launch(without_a_result, 1, 5, np.zeros(5, np.int64))
    assert r.tolist() == [-1, -1, 2, 3, 4]
    r, _ = launch(several_results, 1, 5, np.zeros(5), np.array([9, 4, 0]))
    assert_exact(r, np.array([4.0, 5.5, -1.0, 8.5, 10.0]))


def test_in_an_operand_that_may_not_be_evaluated():
    (r,) = launch(in_an_operand, 1, 5, np.zeros(5, np.int64))
    assert r.tolist() == [14, -1, 8, -1, 5]


def test_the_others_meet_at_the_barrier():
    (r,) = launch(before_a_barrier, 1, 5, np.zeros(5, np.int64))
    assert r.tolist() == [2, 4, 6, -1, 10]
