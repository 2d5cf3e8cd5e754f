"""Tuples: constructed, indexed, unpacked, passed and returned."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def makes(x, out):
    i = cuda.grid(1)
    pair = (x[i], 2.5)
    out[i, 0] = pair[0] + pair[1]
    out[i, 1] = pair[-1] - pair[-2]
    a, b = pair
    out[i, 2] = a * b
    triple = x[i], x[i] + 1, x[i] + 2
    out[i, 3] = triple[0] * triple[1] * triple[2]
    out[i, 4] = len(triple)
    (p, q), r = (triple[0], 3), 4
    out[i, 5] = p + q + r
    p, q = q, p
    out[i, 6] = p - q
    single = (x[i],)
    out[i, 7] = single[0]
    nested = ((1, x[i]), (2.5, (x[i], 4)))
    out[i, 8] = nested[1][1][0] + nested[0][0] + nested[1][0]


def test_tuples():
    run(makes, 2, 4, np.arange(8), np.zeros((8, 9)))


@cuda.jit
def from_grid(out):
    x, y = cuda.grid(2)
    position = cuda.grid(2)
    sizes = cuda.gridsize(2)
    if x < out.shape[0] and y < out.shape[1]:
        out[position] = x * 100 + y + sizes[0] * 10000 + sizes[1] * 1000000


def test_an_array_is_indexed_with_a_tuple_variable():
    run(from_grid, (2, 3), (4, 2), np.zeros((7, 5), np.int64))


@cuda.jit
def unpacks_shape(x, out):
    i = cuda.grid(1)
    rows, cols = x.shape
    if i < rows:
        for j in range(cols):
            out[i] += x[i, j]
    if i == 0:
        out[rows] = cols


def test_shape_is_unpacked():
    x = np.arange(12.0).reshape(3, 4)
    out = run(unpacks_shape, 1, 3, x, np.zeros(4))[1]
    assert out.tolist() == [*x.sum(axis=1), 4.0]


@cuda.jit
def homogeneous(index, out):
    i = cuda.grid(1)
    t = (10, 20, 30, 40)
    out[i, 0] = t[index[i]]
    total = 0
    for k in range(len(t)):
        total += t[k] * k
    out[i, 1] = total


def test_index_known_at_run_time():
    out = run(homogeneous, 1, 8, np.array([0, 1, 2, 3, -1, -2, -3, -4]), np.zeros((8, 2), np.int64))[1]
    assert out[:, 0].tolist() == [10, 20, 30, 40, 40, 30, 20, 10]


@cuda.jit
def carried(x, out):
    i = cuda.grid(1)
    state = (0, 1)
    for _ in range(x[i]):
        state = (state[1], state[0] + state[1])
    out[i] = state[0]
    best = (0, 0.5) if x[i] > 3 else (1, 2)
    out[i] += best[0] * 1000 + best[1]


def test_tuples_change_in_loops_and_branches():
    out = run(carried, 1, 10, np.arange(10), np.zeros(10))[1]
    assert out[9] == 34.5


@cuda.jit
def takes(pair, scales, out):
    i = cuda.grid(1)
    x, y = pair
    a, (b, c) = scales
    out[i] = a * x[i] + b * y[i] + c


def test_tuples_of_arrays_and_scalars_are_arguments():
    x, y = np.arange(8.0), np.arange(8, dtype=np.int32)
    out = run(takes, 2, 4, (x, y), (2, (np.float32(0.5), 3)), np.zeros(8))[2]
    np.testing.assert_array_equal(out, 2 * x + 0.5 * y + 3)


@cuda.jit
def writes_in_tuple(arrays, value):
    i = cuda.grid(1)
    arrays[0][i] = value
    arrays[1][i] = arrays[0][i] * 2


def test_arrays_in_a_tuple_are_written():
    a, b = np.zeros(4), np.zeros(4, np.float32)
    writes_in_tuple[1, 4]((a, b), 3.0)
    assert a.tolist() == [3.0] * 4
    assert b.tolist() == [6.0] * 4


@cuda.jit
def min_max(a, b):
    if a < b:
        return a, b
    return b, a


@cuda.jit
def uses(x, y, out):
    i = cuda.grid(1)
    low, high = min_max(x[i], y[i])
    out[i, 0] = low
    out[i, 1] = high
    out[i, 2] = min_max(y[i], 3)[1]


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_tuples_are_returned(dtype):
    x, y = np.arange(6).astype(dtype), np.arange(6)[::-1].astype(dtype).copy()
    run(uses, 1, 6, x, y, np.zeros((6, 3)))
