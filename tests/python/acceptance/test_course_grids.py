"""A course's kernels on two-dimensional grids: strides, coalescing, tiles, and its lessons about wrong programs."""

import math

import numpy as np
import pytest
from weft import cuda
from weft import types as numba_types
from weft.errors import LaunchError


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.jit
def add_2d_coordinates(a):
    x, y = cuda.grid(2)
    a[y][x] = x + y


def test_coordinates_by_chained_indices():
    a = cuda.to_device(np.zeros((6, 9), np.int32))
    add_2d_coordinates[(3, 2), (3, 3)](a)
    np.testing.assert_array_equal(a.copy_to_host(), np.add.outer(np.arange(6), np.arange(9)))


@cuda.jit
def add_matrix(a, b, c):
    i, j = cuda.grid(2)
    c[i, j] = a[i, j] + b[i, j]


@cuda.jit
def add_matrix_stride(a, b, c):
    y, x = cuda.grid(2)
    stride_y, stride_x = cuda.gridsize(2)
    for i in range(y, a.shape[0], stride_y):
        for j in range(x, a.shape[1], stride_x):
            c[i][j] = a[i][j] + b[i][j]


@pytest.mark.parametrize(
    ("kernel", "side", "launch"),
    [(add_matrix, 36, ((6, 6), (6, 6))), (add_matrix_stride, 64, ((3, 7), (4, 3)))],
    ids=["a thread an element", "stride"],
)
def test_matrices_are_added(kernel, side, launch):
    a = np.arange(side * side).reshape(side, side).astype(np.int32)
    b = np.arange(side * side).reshape(side, side)[::-1].astype(np.int32).copy()
    d_a, d_b = cuda.to_device(a), cuda.to_device(b)
    d_c = cuda.device_array_like(d_a)
    kernel[launch](d_a, d_b, d_c)
    np.testing.assert_array_equal(d_c.copy_to_host(), a + b)


@cuda.jit
def mm(a, b, c):
    row, column = cuda.grid(2)
    sum = 0
    for i in range(a.shape[0]):
        sum += a[row][i] * b[i][column]
    c[row][column] = sum


@cuda.jit
def mm_stride(a, b, c):
    grid_row, grid_column = cuda.grid(2)
    stride_row, stride_column = cuda.gridsize(2)
    for data_row in range(grid_row, a.shape[0], stride_row):
        for data_column in range(grid_column, b.shape[1], stride_column):
            sum = 0
            for i in range(a.shape[1]):
                sum += a[data_row][i] * b[i][data_column]
            c[data_row][data_column] = sum


@pytest.mark.parametrize("kernel", [mm, mm_stride], ids=["mm", "mm_stride"])
@pytest.mark.parametrize("shape", ["small", "uneven", "large"])
def test_matrices_are_multiplied(device, kernel, shape):
    if kernel is mm and shape == "uneven":
        shape = "square"
    side = size(device, 1024, 96)
    (rows, inner, columns), launch = {
        "small": ((4, 4, 4), ((2, 2), (2, 2))),
        "square": ((6, 6, 6), ((3, 2), (2, 3))),
        "uneven": ((3, 4, 6), ((3, 7), (4, 3))),
        "large": ((side, side, side), ((side // 32, side // 32), (32, 32))),
    }[shape]
    rng = np.random.default_rng(31)
    a, b = rng.integers(0, 9, (rows, inner), dtype=np.int32), rng.integers(0, 9, (inner, columns), dtype=np.int32)
    c = np.zeros((rows, columns), np.int32)
    kernel[launch](a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@cuda.jit
def add_experiment(a, b, out, stride, coalesced):
    i = cuda.grid(1)
    # A warp's threads take contiguous elements, or elements with a stride of `stride`.
    if coalesced == True:  # noqa: E712
        out[i] = a[i] + b[i]
    else:
        n = out.size
        j = (i * stride) % n + (i * stride) // n
        out[j] = a[j] + b[j]


@pytest.mark.parametrize("coalesced", [True, False])
def test_a_flag_is_compared_with_true(device, coalesced):
    n, stride = size(device, 1 << 20, 1 << 15), 16
    a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    out = np.zeros(n, np.float32)
    add_experiment[n // 256, 256](a, b, out, stride, coalesced)
    np.testing.assert_array_equal(out, a + b)


@cuda.jit
def row_sums(a, sums, n):
    idx = cuda.grid(1)
    sum = 0.0
    for i in range(n):
        sum += a[idx][i]
    sums[idx] = sum


@cuda.jit
def col_sums(a, sums, n):
    idx = cuda.grid(1)
    sum = 0.0
    for i in range(n):
        sum += a[i][idx]
    sums[idx] = sum


@pytest.mark.parametrize(("kernel", "axis"), [(row_sums, 1), (col_sums, 0)], ids=["rows", "columns"])
def test_sums_of_rows_and_columns(device, kernel, axis):
    n = size(device, 16384, 512)
    a = np.ones((n, n), np.float32)
    a[np.arange(n), np.arange(n) // 3] = 0.25
    d_a, d_sums = cuda.to_device(a), cuda.device_array(n, np.float32)
    kernel[n // 256, 256](d_a, d_sums, n)
    np.testing.assert_array_equal(d_sums.copy_to_host(), a.sum(axis=axis, dtype=np.float64).astype(np.float32))


@cuda.jit
def get_2d_indices(a):
    x, y = cuda.grid(2)
    a[x][y] = x + y / 10.0


@cuda.jit
def matrix_add(a, b, out, coalesced):
    x, y = cuda.grid(2)
    if coalesced == True:  # noqa: E712
        out[y][x] = a[y][x] + b[y][x]
    else:
        out[x][y] = a[x][y] + b[x][y]


def test_indices_of_two_dimensions():
    a = np.zeros((4, 4))
    get_2d_indices[(2, 2), (2, 2)](a)
    np.testing.assert_allclose(a, np.add.outer(np.arange(4), np.arange(4) / 10.0), rtol=1e-15)


@pytest.mark.parametrize("coalesced", [True, False])
def test_matrices_are_added_along_rows_or_columns(device, coalesced):
    n = size(device, 2048, 256)
    a, b = np.arange(n * n, dtype=np.float32).reshape(n, n), np.ones((n, n), np.float32)
    d_a, d_b, d_out = cuda.to_device(a), cuda.to_device(b), cuda.device_array_like(a)
    matrix_add[(n // 32, n // 32), (32, 32)](d_a, d_b, d_out, coalesced)
    np.testing.assert_array_equal(d_out.copy_to_host(), a + b)


M, N = 128, 32
block_size = (32, 32)


@cuda.jit
def mm_shared(a, b, c):
    column, row = cuda.grid(2)
    a_cache = cuda.shared.array(block_size, numba_types.int32)
    b_cache = cuda.shared.array(block_size, numba_types.int32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    a_cache[y][x] = a[row][x]
    b_cache[y][x] = b[y][column]
    cuda.syncthreads()
    sum = 0
    for i in range(a.shape[1]):
        sum += a_cache[y][i] * b_cache[i][x]
    c[row][column] = sum


@cuda.jit
def mm_shared_of_a_float(a, b, c):
    column, row = cuda.grid(2)
    a_cache = cuda.shared.array(block_size, numba_types.int32)
    b_cache = cuda.shared.array(block_size, numba_types.int32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    sum = 0
    # The number of tiles is a float.
    for tile in range(a.shape[1] / block_size[0]):
        a_cache[y, x] = a[row, x + tile * block_size[0]]
        b_cache[y, x] = b[y + tile * block_size[1], column]
        cuda.syncthreads()
        for i in range(block_size[0]):
            sum += a_cache[y, i] * b_cache[i, x]
        cuda.syncthreads()
    c[row, column] = sum


@pytest.mark.parametrize("kernel", [mm_shared, mm_shared_of_a_float], ids=["range", "range of a float"])
def test_product_in_shared_memory(kernel):
    a = np.arange(M * N).reshape(M, N).astype(np.int32)
    b = np.arange(M * N).reshape(N, M).astype(np.int32)
    d_a, d_b, d_c = cuda.to_device(a), cuda.to_device(b), cuda.to_device(np.zeros((M, M), np.int32))
    kernel[(M // block_size[0], M // block_size[1]), block_size](d_a, d_b, d_c)
    np.testing.assert_array_equal(d_c.copy_to_host(), a @ b)


@cuda.jit
def histogram(x, low, high, counts):
    bins = counts.shape[0]
    width = (high - low) / bins
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        bin = np.int32((x[i] - low) / width)
        if 0 <= bin < bins:
            cuda.atomic.add(counts, bin, 1)


def test_a_histogram_with_debug_information():
    x = np.random.default_rng(32).normal(0, 1, 10_000).astype(np.float32)
    low, high = np.float32(-4.0), np.float32(4.0)
    counts = {}
    for debug in (False, True):
        kernel = histogram
        if debug:
            kernel = cuda.jit(debug=True, opt=False)(histogram.py_func)
        counts[debug] = np.zeros(10, np.int32)
        kernel[64, 64](x, low, high, counts[debug])
    bins = np.trunc((x - low).astype(np.float64) / (np.float64(high - low) / 10)).astype(int)
    np.testing.assert_array_equal(counts[False], np.bincount(bins[(bins >= 0) & (bins < 10)], minlength=10))
    np.testing.assert_array_equal(counts[True], counts[False])


@cuda.jit
def square(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = math.pow(a[i], 2.0)


def test_what_a_launch_has_too_much_of_is_an_error():
    a, out = np.arange(4.0), np.zeros(4)
    with pytest.raises(LaunchError, match="2048 threads"):
        square[1, 2048](a, out)
    square[1, 32](a, out)
    np.testing.assert_array_equal(out, a * a)
