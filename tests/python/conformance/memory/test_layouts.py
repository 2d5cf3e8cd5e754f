"""C, F and any layout as arguments, and aliased arguments."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


@cuda.jit
def weigh(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] * 2 + x[i, -1] + x[-1, j]


BASE = np.arange(8 * 12, dtype=np.float64).reshape(8, 12)
ARRAYS = {
    "C": BASE,
    "F": np.asfortranarray(BASE),
    "transposed": BASE.reshape(12, 8).T,
    "rows": BASE[::2],
    "columns": BASE[:, ::3],
    "window": BASE[2:6, 3:9],
    "reversed": BASE[::-1, ::-1],
    "reversed rows": BASE[::-1],
    "one row": BASE[3:4],
    "one column": BASE[:, 5:6],
    "broadcast": np.broadcast_to(np.arange(5.0), (4, 5)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_layouts_of_what_is_read(name):
    x = ARRAYS[name]
    run(weigh, (3, 4), (4, 4), x, np.zeros(x.shape))


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "broadcast"])
def test_layouts_of_what_is_written(name):
    out = np.zeros_like(ARRAYS[name], subok=False)
    view = ARRAYS[name].copy()
    padded = np.zeros((2 * out.shape[0], 3 * out.shape[1]))
    target = padded[::2, ::3]
    weigh[(3, 4), (4, 4)](view, target)
    expected = launch(weigh, (3, 4), (4, 4), view, out)[1]
    np.testing.assert_array_equal(target, expected)
    padded[::2, ::3] = 0
    assert not padded.any(), "a store fell outside the view"


@cuda.jit
def weigh4(x, out):
    i, j, k = cuda.grid(3)
    for m in range(x.shape[3]):
        out[i, j, k, m] = x[i, j, k, m] + x[-1, j, k, m] * 10


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_layouts_of_four_dimensions(axes):
    x = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5).transpose(axes)
    run(weigh4, (1, 1, 1), x.shape[:3], x, np.zeros(x.shape, np.int32, order="F"))


@cuda.jit
def steps(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + 1


@pytest.mark.parametrize("step", [2, -1, -3, 5])
def test_strided_vectors(step):
    x = np.arange(60, dtype=np.int16)[::step]
    run(steps, x.size, 1, x, np.zeros(x.size, np.int64))


def test_a_specialisation_for_each_layout():
    x = np.arange(16.0)
    for source in (x, x[::2], x[::-1], x.astype(np.float32), x[:3]):
        out = launch(steps, source.size, 1, source, np.zeros(source.size))[1]
        np.testing.assert_array_equal(out, source + 1)


@cuda.jit
def shift_left(x, y):
    i = cuda.grid(1)
    value = y[i + 1]
    cuda.syncthreads()
    x[i] = value


def test_the_same_array_twice():
    # Both arguments are the same device array: stores through one name are visible through the other.
    d = cuda.to_device(np.arange(9))
    shift_left[1, 8](d, d)
    assert d.copy_to_host().tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 8]


@cuda.jit
def copy_then_read(x, y, out):
    x[0] = 5
    first = y[0]
    x[0] = 6
    out[0] = first
    out[1] = y[0]


def test_aliased_arguments_are_reread():
    d = cuda.to_device(np.zeros(1, np.int64))
    out = cuda.to_device(np.zeros(2, np.int64))
    copy_then_read[1, 1](d, d, out)
    assert out.copy_to_host().tolist() == [5, 6]
