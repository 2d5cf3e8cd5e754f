"""Kernels with `wraparound=False`, which assumes that no array index is negative."""

import numpy as np
import pytest
from weft import cuda
from weft.errors import CompileError


@cuda.jit(device=True)
def last_two(row):
    # Slices, tuples and NumPy functions keep Python's semantics.
    return row[-2:], (1, 2, 3)[-1]


@cuda.jit(wraparound=False)
def gather(x, order, out):
    i = cuda.grid(1)
    if i < order.size:
        tail, three = last_two(x[order[i]])
        out[i, 0] = tail[0] + tail[1] * three
        out[i, 1] = x[order[i], i] + x[i].sum()
        cuda.atomic.add(out, (order[i], 2), i)


@pytest.mark.parametrize("layout", ["C", "F", "A"])
def test_indices_that_are_not_negative(layout):
    whole = np.arange(80.0).reshape(8, 10)
    x = {"C": whole[:4].copy(), "F": np.asfortranarray(whole[:4]), "A": whole[::-2, ::2]}[layout]
    order = np.array([2, 0, 3, 1])
    out = np.zeros((4, 3))
    gather[2, 3](x, order, out)
    expected = np.zeros((4, 3))
    for i, row in enumerate(order):
        expected[i, 0] = x[row, -2] + x[row, -1] * 3
        expected[i, 1] = x[row, i] + x[i].sum()
        expected[row, 2] = i
    np.testing.assert_array_equal(out, expected)


def test_negative_indices_are_out_of_bounds():
    @cuda.jit(wraparound=False, boundscheck=True)
    def load(x, i, out):
        out[0] = x[i]

    x, out = cuda.to_device(np.arange(3.0)), cuda.to_device(np.zeros(1))
    load[1, 1](x, 2, out)
    cuda.synchronize()
    assert out.copy_to_host()[0] == 2
    load[1, 1](x, -1, out)
    with pytest.raises(IndexError, match="index -1 is out of bounds for axis 0 with size 3"):
        cuda.synchronize()


def test_a_negative_index_that_is_written_is_an_error():
    @cuda.jit(wraparound=False)
    def last(x):
        x[-1] = 1

    with pytest.raises(CompileError, match="the index -1 is negative") as caught:
        last[1, 1](np.zeros(3))
    assert "a.shape[0] - 1" in str(caught.value)
