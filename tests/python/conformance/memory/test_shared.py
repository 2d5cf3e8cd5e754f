"""Shared, dynamic shared and local arrays."""

import numpy as np
import pytest
import weft
from harness import run
from weft import cuda

SIZE = 16
TILE = (4, 4)


@cuda.jit
def reverse(x):
    tile = cuda.shared.array(SIZE, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = x[i]
    cuda.syncthreads()
    x[i] = tile[SIZE - 1 - t]


def test_one_dimension():
    x = np.arange(48, dtype=np.float32)
    out = run(reverse, 3, 16, x)[0]
    np.testing.assert_array_equal(out.reshape(3, 16), x.reshape(3, 16)[:, ::-1])


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array(TILE, dtype=np.int32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.grid(2)
    tile[ty, tx] = x[j, i]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 4 + ty, cuda.blockIdx.y * 4 + tx] = tile[tx, ty]


def test_two_dimensions():
    x = np.arange(96, dtype=np.int32).reshape(8, 12)
    out = run(transpose, (3, 2), (4, 4), x, np.zeros((12, 8), np.int32))[1]
    np.testing.assert_array_equal(out, x.T)


@cuda.jit
def three_dimensions(out):
    cube = cuda.shared.array((2, 3, 4), np.int16)
    t = cuda.threadIdx
    cube[t.z, t.y, t.x] = t.z * 100 + t.y * 10 + t.x
    cuda.syncthreads()
    out[t.z, t.y, t.x] = cube[1 - t.z, 2 - t.y, 3 - t.x]


def test_three_dimensions():
    run(three_dimensions, 1, (4, 3, 2), np.zeros((2, 3, 4), np.int64))


@cuda.jit
def two_arrays(x, out):
    a = cuda.shared.array(8, np.int32)
    b = cuda.shared.array(8, np.float64)
    t = cuda.threadIdx.x
    a[t] = x[t]
    b[t] = x[t] * 0.5
    cuda.syncthreads()
    out[t] = a[7 - t] + b[(t + 1) % 8]


def test_each_call_is_its_own_array():
    run(two_arrays, 1, 8, np.arange(8), np.zeros(8))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float32", "float64", "complex64", "complex128"]
)
def test_dtypes(dtype):
    kind = np.dtype(dtype)

    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array(8, kind)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        tile[t] = x[i]
        cuda.syncthreads()
        out[i] = tile[7 - t]

    x = (np.arange(16) % 5).astype(dtype)
    out = run(kernel, 2, 8, x, np.zeros(16, dtype))[1]
    np.testing.assert_array_equal(out, x.reshape(2, 8)[:, ::-1].ravel())


@cuda.jit
def dynamic(x, out):
    tile = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[cuda.blockDim.x - 1 - t] + tile.size


@pytest.mark.parametrize("threads", [8, 32, 128])
def test_dynamic_shared_memory(threads):
    x = np.arange(2 * threads, dtype=np.float32)
    run(dynamic, 2, threads, x, np.zeros(2 * threads, np.float32), shared_bytes=4 * threads)


@cuda.jit
def partitioned(x, n, out):
    whole = cuda.shared.array(shape=0, dtype=np.int32)
    a, b = whole[:n], whole[n : 2 * n]
    t = cuda.threadIdx.x
    a[t] = x[t]
    b[t] = x[t] * 100
    cuda.syncthreads()
    out[t] = a[n - 1 - t] + b[(t + 1) % n]


def test_dynamic_shared_memory_in_two_views():
    run(partitioned, 1, 8, np.arange(8, dtype=np.int32), 8, np.zeros(8, np.int64), shared_bytes=64)


@cuda.jit
def static_and_dynamic(x, out):
    fixed = cuda.shared.array(8, np.float32)
    free = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    fixed[t] = x[t]
    free[t] = -x[t]
    cuda.syncthreads()
    out[t] = fixed[7 - t] * 10 + free[t]


def test_static_and_dynamic_memory_are_apart():
    run(static_and_dynamic, 1, 8, np.arange(8, dtype=np.float32), np.zeros(8), shared_bytes=32)


@cuda.jit
def large(out):
    tile = cuda.shared.array(0, np.uint8)
    t = cuda.threadIdx.x
    tile[tile.size - 1 - t] = t
    cuda.syncthreads()
    out[t] = tile[tile.size - 32 + t]


def test_more_dynamic_memory_than_48_kib():
    out = run(large, 1, 32, np.zeros(32, np.int64), shared_bytes=96 * 1024)[0]
    assert out.tolist() == list(range(31, -1, -1))


@cuda.jit
def local_sort(x, out):
    i = cuda.grid(1)
    a = cuda.local.array(6, np.int64)
    for k in range(6):
        a[k] = x[i, k]
    for k in range(1, 6):
        item = a[k]
        j = k
        while j > 0 and a[j - 1] > item:
            a[j] = a[j - 1]
            j -= 1
        a[j] = item
    for k in range(6):
        out[i, k] = a[k]


def test_local_arrays():
    x = np.random.default_rng(5).integers(0, 50, (32, 6))
    out = run(local_sort, 2, 16, x, np.zeros((32, 6), np.int64))[1]
    np.testing.assert_array_equal(out, np.sort(x, axis=1))


@cuda.jit
def local_matrix(x, out):
    i = cuda.grid(1)
    a = cuda.local.array((2, 3), np.float32)
    for r in range(2):
        for c in range(3):
            a[r, c] = x[i] * r + c
    out[i] = a[1][2] - a[0, 1] + a[-1, -2] + a.size + a[1].size


def test_local_arrays_of_two_dimensions():
    run(local_matrix, 2, 4, np.arange(8, dtype=np.float32), np.zeros(8))


@cuda.jit
def bump(array):
    t = cuda.threadIdx.x
    array[t] += 1


@cuda.jit
def total(array):
    result = array[0]
    for k in range(1, array.size):
        result += array[k]
    return result


@cuda.jit
def passes_arrays(out):
    tile = cuda.shared.array(8, np.int64)
    mine = cuda.local.array(8, np.int64)
    t = cuda.threadIdx.x
    tile[t] = t
    for k in range(8):
        mine[k] = 0
    bump(tile)
    bump(mine)
    cuda.syncthreads()
    out[t] = total(tile) * 10 + total(mine)
    bump(out)


def test_arrays_of_each_memory_are_arguments():
    out = run(passes_arrays, 1, 8, np.zeros(8, np.int64))[0]
    assert out.tolist() == [362] * 8


@cuda.jit(device=True)
def reversed_through_shared(x, n, dtype, shape=(1, 1)):
    part = cuda.shared.array(n, dtype)
    square = cuda.local.array(shape=shape, dtype=dtype)
    i = cuda.threadIdx.x
    square[0, shape[1] - 1] = x[i]
    part[i] = square[0, shape[1] - 1]
    cuda.syncthreads()
    x[i] = part[n - 1 - i]
    cuda.syncthreads()


def test_constants_given_to_a_function_are_shapes_in_it():
    @cuda.jit
    def eight(x):
        reversed_through_shared(x, 8, np.float32)

    @cuda.jit
    def four(x):
        reversed_through_shared(x, 4, np.int64, (2, 3))

    x, y = np.arange(8, dtype=np.float32), np.arange(4)
    eight[1, 8](x)
    four[1, 4](y)
    assert x.tolist() == list(range(8))[::-1]
    assert y.tolist() == [3, 2, 1, 0]


def test_a_shape_that_the_function_changes_is_no_constant():
    @cuda.jit(device=True)
    def made(n):
        n = n + 1
        return cuda.local.array(n, np.int32).size

    @cuda.jit
    def kernel(x):
        x[0] = made(3)

    with pytest.raises(weft.errors.CompileError, match="must be a compile-time constant"):
        kernel[1, 1](np.zeros(1))
