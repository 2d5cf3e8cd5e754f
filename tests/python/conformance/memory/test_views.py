"""Slices, rows and transposes as views of their array."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def slices(x, out):
    i = cuda.grid(1)
    out[i, 0] = x[2:][i]
    out[i, 1] = x[:-1][-1 - i]
    out[i, 2] = x[1:9:2][i]
    out[i, 3] = x[::-1][i]
    out[i, 4] = x[-5:-1][i]
    out[i, 5] = x[8:2:-2][i % 3]
    out[i, 6] = x[:][i]
    out[i, 7] = x[i:].size
    out[i, 8] = x[i : i + 3].shape[0]
    out[i, 9] = x[-100:100].size
    out[i, 10] = x[5:2].size
    out[i, 11] = x[i:][i:][0]
    out[i, 12] = x[::3].size
    out[i, 13] = x[::-4].size


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_slices_of_one_dimension(dtype):
    run(slices, 1, 4, np.arange(10, 20).astype(dtype), np.zeros((4, 14), np.int64))


@cuda.jit
def bounds(x, lower, upper, step, out):
    i = cuda.grid(1)
    part = x[lower[i] : upper[i] : step[i]]
    out[i, 0] = part.size
    for k in range(part.size):
        out[i, 1 + k] = part[k]


def test_slices_with_bounds_known_at_run_time():
    cases = [(a, b, s) for a in (-12, -3, 0, 4, 7, 20) for b in (-9, -1, 0, 5, 8, 30) for s in (-3, -1, 1, 2, 9)]
    lower, upper, step = np.array(cases).T.copy()
    x = np.arange(100, 108)
    out = run(bounds, len(cases), 1, x, lower, upper, step, np.zeros((len(cases), 9), np.int64))[4]
    for row, case in zip(out, cases, strict=True):
        expected = x[slice(*case)].tolist()
        assert row[: 1 + row[0]].tolist() == [len(expected), *expected], case


@cuda.jit
def writes_through(out, other):
    i = cuda.grid(1)
    half = out[4:]
    half[i] = i + 1
    out[:4][i] = -i
    odd = other[1::2]
    odd[i] += 100


def test_stores_through_a_view():
    out, other = run(writes_through, 1, 4, np.zeros(8, np.int64), np.arange(8))
    assert out.tolist() == [0, -1, -2, -3, 1, 2, 3, 4]
    assert other.tolist() == [0, 101, 2, 103, 4, 105, 6, 107]


@cuda.jit
def planes(x, out):
    i, j = cuda.grid(2)
    out[i, j, 0] = x[i, 1:][j]
    out[i, j, 1] = x[1:, j][i]
    out[i, j, 2] = x[::-1, ::-1][i, j]
    out[i, j, 3] = x[:, j][i]
    out[i, j, 4] = x[i][:3][j]
    out[i, j, 5] = x[i:, j:].shape[0] * 100 + x[i:, j:].shape[1]
    out[i, j, 6] = x[i:, j:][0, 0]
    out[i, j, 7] = x[-1][::-1][j]


def test_slices_of_two_dimensions():
    run(planes, (1, 1), (3, 3), np.arange(20).reshape(4, 5), np.zeros((3, 3, 8), np.int64))


@cuda.jit
def cubes(x, out):
    i, j = cuda.grid(2)
    out[i, j, 0] = x[1, :, j][i]
    out[i, j, 1] = x[:, i][0, j]
    out[i, j, 2] = x[0, i, 1:3][j]
    out[i, j, 3] = x[:, 1:, ::2][1, i, j]
    out[i, j, 4] = x[-1, ::-1][i][j]


def test_slices_of_three_dimensions():
    run(cubes, (1, 1), (2, 2), np.arange(24.0).reshape(2, 3, 4), np.zeros((2, 2, 5)))


@cuda.jit
def transposed(x, out):
    i, j = cuda.grid(2)
    t = x.T
    if i < t.shape[0] and j < t.shape[1]:
        out[i, j] = t[i, j]


@pytest.mark.parametrize("order", ["C", "F"])
def test_transpose_is_a_view(order):
    x = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    out = run(transposed, (1, 1), (4, 4), x, np.zeros((4, 3)))[1]
    np.testing.assert_array_equal(out, x.T)


@cuda.jit
def chooses(x, y, even, out):
    i = cuda.grid(1)
    source = x if even else y
    if i % 2:
        part = source[1:]
    else:
        part = source[:-1]
    out[i] = part[i]


@pytest.mark.parametrize("even", [True, False])
def test_an_array_chosen_at_run_time(even):
    run(chooses, 1, 4, np.arange(5), np.arange(10, 15), even, np.zeros(4, np.int64))


@cuda.jit
def swaps(x, y, turns):
    i = cuda.grid(1)
    source, target = x, y
    for _ in range(turns):
        target[i] = source[i] + 1
        source, target = target, source


def test_arrays_swapped_in_a_loop():
    x, y = run(swaps, 1, 4, np.arange(4), np.zeros(4, np.int64), 5)[:2]
    assert x.tolist() == [4, 5, 6, 7]
    assert y.tolist() == [5, 6, 7, 8]


@cuda.jit
def fills(out):
    i = cuda.grid(1)
    if i == 0:
        out[1:3] = 7
    elif i == 1:
        out[::4] = 1.5


def test_a_slice_is_filled_with_a_scalar():
    out = run(fills, 1, 2, np.zeros(8))[0]
    assert out.tolist() == [1.5, 7, 7, 0, 1.5, 0, 0, 0]


@cuda.jit
def tuples_into_slices(a, b, out):
    i = cuda.grid(1)
    out[1:4] = (a[i], 2, 3.5)
    out[4:8:2] = b
    out[::-1][:2] = 10 + i, 20
    out[0:2] = (out[1], out[0])
    row = cuda.local.array((2, 3), np.int32)
    row[0] = (1, 2, 3)
    row[1] = row[0, 2], row[0, 1], row[0, 0]
    for k in range(3):
        out[8 + k] = row[1, k]


def test_tuples_are_stored_into_slices():
    run(tuples_into_slices, 1, 1, np.array([7]), (1, 2.5), np.zeros(13))


@cuda.jit
def tuple_beyond_the_end(out):
    out[3:6] = (1, 2, 3)


def test_a_tuple_does_not_go_beyond_a_slice():
    out = np.zeros(8)
    with pytest.raises(ValueError, match="a dimension of size 3 to size 1"):
        tuple_beyond_the_end[1, 1](out[:4])
    assert not out.any()
