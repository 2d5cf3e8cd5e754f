"""Thread and block coordinates."""

import numpy as np
import pytest
import weft
from harness import run
from weft import cuda
from weft.cuda import blockDim, blockIdx, grid, threadIdx

LAUNCHES = [
    (1, 1),
    (3, 32),
    ((5,), (7,)),
    ((2, 3), (4, 5)),
    ((2, 3, 4), (3, 2, 5)),
    ((1, 1, 3), (1, 8, 1)),
    (2, (4, 4)),
    ((2, 2), 6),
]


@cuda.jit
def coordinates(out):
    t, b = cuda.threadIdx, cuda.blockIdx
    thread = t.x + cuda.blockDim.x * (t.y + cuda.blockDim.y * t.z)
    block = b.x + cuda.gridDim.x * (b.y + cuda.gridDim.y * b.z)
    row = block * (cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z) + thread
    out[row, 0] = t.x
    out[row, 1] = t.y
    out[row, 2] = t.z
    out[row, 3] = b.x
    out[row, 4] = b.y
    out[row, 5] = b.z
    out[row, 6] = cuda.blockDim.x * 10000 + cuda.blockDim.y * 100 + cuda.blockDim.z
    out[row, 7] = cuda.gridDim.x * 10000 + cuda.gridDim.y * 100 + cuda.gridDim.z
    out[row, 8] = cuda.grid(1) + cuda.gridsize(1) * 1000
    x, y = cuda.grid(2)
    out[row, 9] = x * 1000 + y
    x, y, z = cuda.grid(3)
    out[row, 10] = x * 1000000 + y * 1000 + z
    x, y, z = cuda.gridsize(3)
    out[row, 11] = x * 1000000 + y * 1000 + z
    out[row, 12] = cuda.laneid
    out[row, 13] = cuda.warpsize


@pytest.mark.parametrize("shape", LAUNCHES, ids=str)
def test_coordinates(shape):
    threads = int(np.prod(shape[0]) * np.prod(shape[1]))
    run(coordinates, *shape, np.full((threads, 14), -1, np.int64))


@cuda.jit
def whole_objects(out):
    bi, bd, ti = cuda.blockIdx, cuda.blockDim, cuda.threadIdx
    i = bi.x * bd.x + ti.x
    out[i] = i


def test_registers_bound_to_locals():
    out = run(whole_objects, 4, 8, np.zeros(32, np.int64))[0]
    assert out.tolist() == list(range(32))


@cuda.jit
def bare_names(out):
    i = grid(1)
    out[i] = blockIdx.x * blockDim.x + threadIdx.x


@weft.cuda.jit
def through_the_package(out):
    i = weft.cuda.grid(1)
    out[i] = weft.cuda.threadIdx.x


def test_other_spellings():
    run(bare_names, 2, 8, np.zeros(16, np.int64))
    run(through_the_package, 2, 8, np.zeros(16, np.int64))


def test_an_alias_and_a_closure_variable():
    from weft import cuda as gpu

    def kernel(out):
        i = gpu.grid(1)
        out[i] = i * 2

    run(gpu.jit(kernel), 2, 8, np.zeros(16, np.int64))


@cuda.jit
def widths(out):
    i = cuda.threadIdx.x
    # int32 times int32 is int64: no wrap at 2^31.
    out[i] = (cuda.threadIdx.x + 65536) * (cuda.blockDim.x + 65536)


def test_coordinates_multiply_in_64_bits():
    out = run(widths, 1, 4, np.zeros(4, np.int64))[0]
    assert out[3] == 65539 * 65540


@pytest.mark.parametrize("block", [1, 31, 33, 100, 1024, (32, 32), (16, 8, 8), (1, 1, 64)])
def test_block_shapes(block):
    threads = int(np.prod(block))
    out = np.zeros(2 * threads, np.int64)

    @cuda.jit
    def count(out):
        t = cuda.threadIdx
        linear = t.x + cuda.blockDim.x * (t.y + cuda.blockDim.y * t.z)
        out[cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z + linear] += 1 + linear

    run(count, 2, block, out)


def test_many_blocks():
    n = 100_000
    out = np.zeros(n, np.int32)

    @cuda.jit
    def mark(out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = cuda.blockIdx.x

    mark[(n + 31) // 32, 32](out)
    np.testing.assert_array_equal(out, np.arange(n) // 32)


@cuda.jit
def guarded_from_beyond_the_row(n, out):
    i = cuda.grid(1)
    if i > 9 and n == 2:
        out[i] = i + 1


@cuda.jit
def returns_beyond_the_row(n, out):
    t = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    if n == 2 and t > 9:
        return
    cuda.syncthreads()
    out[t] = t + 1


@pytest.mark.parametrize("n", [1, 2])
def test_a_false_part_of_a_guard_stops_rows_that_another_part_begins_after(n):
    out = run(guarded_from_beyond_the_row, 6, 4, n, np.zeros(24, np.int64))[1]
    assert out.any() == (n == 2)
    run(returns_beyond_the_row, 1, (4, 3), n, np.zeros(12, np.int64))
