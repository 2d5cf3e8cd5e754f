"""Rows A6.10 to A6.15 and A6.20: a course's kernels, from one thread per element to transposes in shared memory."""

import math

import numpy as np
import pytest
from weft import cuda, float32, int32


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.jit
def add_kernel(x, y, out):
    idx = cuda.grid(1)
    out[idx] = x[idx] + y[idx]


def test_a6_10_one_thread_an_element():
    n = 4096
    x = np.arange(n).astype(np.int32)
    y = np.ones_like(x)
    d_x, d_y = cuda.to_device(x), cuda.to_device(y)
    d_out = cuda.device_array_like(d_x)
    add_kernel[32, 128](d_x, d_y, d_out)
    cuda.synchronize()
    out = d_out.copy_to_host()
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, x + y)


@cuda.jit
def square_device(a, out):
    idx = cuda.grid(1)
    out[idx] = a[idx] ** 2


def test_a6_11_a_device_array_in_numpys_testing():
    n = 4096
    a = np.arange(n)
    d_a = cuda.to_device(a)
    d_out = cuda.device_array(shape=(n,), dtype=np.float32)
    square_device[128, 32](d_a, d_out)
    np.testing.assert_almost_equal(d_out, a.astype(np.float32) ** 2)


@cuda.jit
def add_stride(x, y, out):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, x.shape[0], stride):
        out[i] = x[i] + y[i]


def test_a6_12_grid_stride():
    n = 100_000
    x = np.arange(n).astype(np.int32)
    y = np.ones_like(x)
    d_x, d_y = cuda.to_device(x), cuda.to_device(y)
    d_out = cuda.device_array_like(d_x)
    add_stride[30, 128](d_x, d_y, d_out)
    np.testing.assert_array_equal(d_out.copy_to_host(), x + y)


@cuda.jit
def hypot_stride(a, b, c):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, a.shape[0], stride):
        c[i] = math.hypot(a[i], b[i])


@pytest.mark.parametrize("launch", [(1, 1), (128, 64)])
def test_a6_13_hypot(device, launch):
    n = size(device, 1_000_000, 100_000)
    rng = np.random.default_rng(20)
    a, b = (rng.uniform(-12, 12, n).astype(np.float32) for _ in range(2))
    d_a, d_b, d_c = cuda.to_device(a), cuda.to_device(b), cuda.device_array_like(b)
    hypot_stride[launch](d_a, d_b, d_c)
    np.testing.assert_allclose(d_c.copy_to_host(), np.hypot(a, b), rtol=1e-6)


@cuda.jit
def counter_racy(counter):
    counter[0] += 1


@cuda.jit
def counter_safe(counter):
    cuda.atomic.add(counter, 0, 1)


def test_a6_14_races_and_atomics():
    racy, safe = (cuda.to_device(np.array([0], np.int32)) for _ in range(2))
    counter_racy[64, 64](racy)
    counter_safe[64, 64](safe)
    assert 1 <= racy.copy_to_host()[0] <= 4096
    assert safe.copy_to_host()[0] == 4096


@cuda.jit
def cuda_histogram(x, xmin, xmax, histogram_out):
    nbins = histogram_out.shape[0]
    bin_width = (xmax - xmin) / nbins
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, x.shape[0], stride):
        bin_number = np.int32((x[i] - xmin) / bin_width)
        if 0 <= bin_number < histogram_out.shape[0]:
            cuda.atomic.add(histogram_out, bin_number, 1)


@cuda.jit
def cuda_histogram_int(x, xmin, xmax, histogram_out):
    nbins = histogram_out.shape[0]
    bin_width = (xmax - xmin) / nbins
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        bin_number = int((x[i] - xmin) / bin_width)
        if bin_number >= 0 and bin_number < nbins:
            cuda.atomic.add(histogram_out, bin_number, 1)


@pytest.mark.parametrize("kernel", [cuda_histogram, cuda_histogram_int], ids=["np.int32", "int"])
def test_a6_15_histogram(kernel):
    x = np.random.default_rng(21).normal(size=10_000, loc=0, scale=1).astype(np.float32)
    xmin, xmax = np.float32(-4.0), np.float32(4.0)
    d_histogram = cuda.to_device(np.zeros(10, np.int32))
    kernel[128, 64](cuda.to_device(x), xmin, xmax, d_histogram)
    # The interval below the first bin truncates into bin 0, as in the kernel.
    bins = np.trunc((x - xmin).astype(np.float64) / (np.float64(xmax - xmin) / 10)).astype(int)
    expected = np.bincount(bins[(bins >= 0) & (bins < 10)], minlength=10)
    np.testing.assert_array_equal(d_histogram.copy_to_host(), expected)


@cuda.jit
def swap_with_shared(x, y):
    temp = cuda.shared.array(4, dtype=int32)
    idx = cuda.grid(1)
    temp[idx] = x[idx]
    cuda.syncthreads()
    y[idx] = temp[cuda.blockDim.x - cuda.threadIdx.x - 1]


def test_a6_20_swap_with_shared():
    x = np.arange(4).astype(np.int32)
    y = np.zeros_like(x)
    swap_with_shared[1, 4](x, y)
    assert y.tolist() == [3, 2, 1, 0]


@cuda.jit
def transpose(a, b):
    x, y = cuda.grid(2)
    b[x, y] = a[y, x]


TILE_SHAPE = (32, 32)


@cuda.jit
def tile_transpose(a, transposed):
    tile = cuda.shared.array(TILE_SHAPE, float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    t_x = cuda.blockDim.y * cuda.blockIdx.y + cuda.threadIdx.x
    t_y = cuda.blockDim.x * cuda.blockIdx.x + cuda.threadIdx.y
    transposed[t_y, t_x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def tile_transpose_conflict_free(a, transposed):
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    t_x = cuda.blockDim.y * cuda.blockIdx.y + cuda.threadIdx.x
    t_y = cuda.blockDim.x * cuda.blockIdx.x + cuda.threadIdx.y
    transposed[t_y, t_x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@pytest.mark.parametrize(
    "kernel",
    [transpose, tile_transpose, tile_transpose_conflict_free],
    ids=lambda kernel: kernel.py_func.__name__,
)
def test_a6_20_transposes(device, kernel):
    n = size(device, 4096, 256)
    a = np.arange(n * n, dtype=np.float32).reshape(n, n)
    d_a, d_b = cuda.to_device(a), cuda.to_device(np.zeros_like(a))
    kernel[(n // 32, n // 32), (32, 32)](d_a, d_b)
    np.testing.assert_array_equal(d_b.copy_to_host(), a.T)


TILE = 32
BLOCK_ROWS = 8
PADDED = (TILE, TILE + 1)


@cuda.jit
def transpose_in_rows(a, out):
    tile = cuda.shared.array(PADDED, int32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * TILE + tx
    y = cuda.blockIdx.y * TILE + ty
    for j in range(0, TILE, BLOCK_ROWS):
        tile[ty + j, tx] = a[y + j, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + tx
    y = cuda.blockIdx.x * TILE + ty
    for j in range(0, TILE, BLOCK_ROWS):
        out[y + j, x] = tile[tx, ty + j]


def test_a6_20_transpose_with_fewer_threads_than_elements(device):
    n = size(device, 8192, 256)
    a = np.arange(n * n, dtype=np.int32).reshape(n, n)
    d_a, d_out = cuda.to_device(a), cuda.device_array((n, n), np.int32)
    transpose_in_rows[(n // TILE, n // TILE), (TILE, BLOCK_ROWS)](d_a, d_out)
    np.testing.assert_array_equal(d_out.copy_to_host(), a.T)
