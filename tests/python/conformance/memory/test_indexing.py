"""Element access: negative indices, index types, chained subscripts, 1 to 4 dimensions."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def from_the_end(x, out):
    i = cuda.grid(1)
    out[i] = x[-1 - i] + x[i - x.size]
    out[-1] = x[-x.size]


def test_negative_indices_wrap():
    x = np.arange(10, 18)
    run(from_the_end, 1, 8, x, np.zeros(9, np.int64))


@cuda.jit
def indexed_by(x, index, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signed_indices_wrap(dtype):
    index = np.array([0, 5, -1, -6, 3, -3], dtype)
    out = run(indexed_by, 1, 6, np.arange(100, 106), index, np.zeros(6, np.int64))[2]
    assert out.tolist() == [100, 105, 105, 100, 103, 103]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_indices(dtype):
    index = np.array([0, 5, 2, 4], dtype)
    out = run(indexed_by, 1, 4, np.arange(100, 106), index, np.zeros(4, np.int64))[2]
    assert out.tolist() == [100, 105, 102, 104]


@cuda.jit
def overflowed(x, out):
    i = cuda.grid(1)
    if i % 2 == 0:
        out[i] = x[i * 0x7FFFFFFFFFFFFFFF]
        total = 0
        for _ in range(i):
            total = total + 0x7FFFFFFFFFFFFFFF
        out[i + 1] = x[total]


def test_an_index_that_overflowed_to_a_negative_number_wraps():
    """An even number times 2^63 - 1 is its negation in 64 bits."""
    out = run(overflowed, 1, 8, np.arange(10, 20), np.zeros(8, np.int64))[1]
    assert out.tolist() == [10, 10, 18, 18, 16, 16, 14, 14]


@cuda.jit
def neighbors(x, out):
    i, j, k = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        out[i, j, k] = x[i - 1, j, k] + x[i, j - 1, k] * 2 + x[i, j, k - 1] * 4 + x[-1, -1, -1]


def test_negative_indices_wrap_in_every_dimension():
    run(neighbors, (2, 2, 2), (2, 2, 3), np.arange(60.0).reshape(3, 4, 5), np.zeros((3, 4, 5)))


@cuda.jit
def chained(x, out):
    i, j = cuda.grid(2)
    out[i][j] = x[i][j]
    out[i][j] += x[j][i]
    out[i][j] *= 2
    row = x[i]
    out[i, j] -= row[-1 - j]


def test_chained_subscripts():
    run(chained, (1, 1), (4, 4), np.arange(16).reshape(4, 4), np.zeros((4, 4), np.int64))


@cuda.jit
def chained_three_deep(x, out):
    i, j, k = cuda.grid(3)
    plane = x[i]
    out[i][j][k] = x[i][j][k] + plane[j][k] + plane[j, k] + x[i, j][k]
    out[i][j, k] += 1


def test_chained_subscripts_three_deep():
    run(chained_three_deep, (1, 1, 1), (2, 3, 4), np.arange(24.0).reshape(2, 3, 4), np.zeros((2, 3, 4)))


@cuda.jit
def one(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + 1


@cuda.jit
def two(x, out):
    i, j = cuda.grid(2)
    out[i, j] = x[i, j] + 1


@cuda.jit
def three(x, out):
    i, j, k = cuda.grid(3)
    out[i, j, k] = x[i, j, k] + 1


@cuda.jit
def four(x, out):
    i, j, k = cuda.grid(3)
    for m in range(x.shape[3]):
        out[i, j, k, m] = x[i, j, k, m] + 1


KERNELS = {1: one, 2: two, 3: three, 4: four}
DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()


@pytest.mark.parametrize("ndim", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dimensions_and_dtypes(ndim, dtype):
    shape = (2, 3, 4, 5)[:ndim]
    block = (2, 3, 4)[:ndim]
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    out = run(KERNELS[ndim], (1,) * len(block), block, x, np.zeros(shape, dtype))[1]
    np.testing.assert_array_equal(out, (x.astype("f8") + 1).astype(dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("ndim", KERNELS)
def test_complex_dtypes(ndim, dtype):
    shape = (2, 3, 4, 5)[:ndim]
    x = (np.arange(np.prod(shape)) * (1 - 2j)).reshape(shape).astype(dtype)
    run(KERNELS[ndim], (1,) * min(ndim, 3), shape[:3], x, np.zeros(shape, dtype))


@cuda.jit
def mixed_indices(x, index8, out):
    i = cuda.threadIdx.x
    j = index8[i]
    out[i] = x[i, j, cuda.blockIdx.x]


def test_indices_of_different_types():
    x = np.arange(24).reshape(4, 3, 2)
    run(mixed_indices, 1, 4, x, np.array([0, 2, 1, 1], np.uint8), np.zeros(4, np.int64))


@cuda.jit
def scatter(x, target, out):
    i = cuda.grid(1)
    if i < x.size:
        out[target[i]] = x[i]


def test_scatter():
    target = np.random.default_rng(4).permutation(50)
    out = run(scatter, 4, 16, np.arange(50), target, np.zeros(50, np.int64))[2]
    assert out[target].tolist() == list(range(50))


@cuda.jit
def zero_dimensional(x, out):
    out[()] = x[()] + 1


def test_arrays_without_dimensions():
    out = run(zero_dimensional, 1, 1, np.array(41.0), np.array(0.0))[1]
    assert out == 42.0


@cuda.jit
def guarded(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


def test_empty_arrays():
    run(guarded, 2, 4, np.zeros(0), np.zeros(0))
