"""Kernels that are compiled for the blocks of their first launch, and are then launched with others."""

import itertools

import numpy as np
import pytest
from harness import run
from weft import _weft, cuda


def tiles():
    @cuda.jit
    def tiles(a, b, out):
        left = cuda.shared.array((32, 33), np.float32)
        right = cuda.shared.array((32, 32), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        width, height = cuda.blockDim.x, cuda.blockDim.y
        i, j = cuda.blockIdx.y * height + ty, cuda.blockIdx.x * width + tx
        total = np.float32(0)
        for start in range(0, a.shape[1], height):
            for k in range(tx, height, width):
                left[ty, k] = a[i, start + k] if i < a.shape[0] and start + k < a.shape[1] else np.float32(0)
            right[ty, tx] = b[start + ty, j] if start + ty < b.shape[0] and j < b.shape[1] else np.float32(0)
            cuda.syncthreads()
            for k in range(height):
                total += left[ty, k] * right[k, tx]
            cuda.syncthreads()
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = total

    return tiles


BLOCKS = [(16, 16), (8, 8), (32, 8), (5, 7), (32, 1), (1, 1)]


@pytest.mark.parametrize(
    ("first", "second"), [*itertools.permutations(BLOCKS[:4], 2), (BLOCKS[4], BLOCKS[0]), BLOCKS[4:]]
)
def test_other_blocks_after_the_first(first, second):
    kernel = tiles()
    random = np.random.default_rng(1)
    m, n, k = 21, 35, 18
    a, b = random.integers(-9, 9, (m, k)).astype(np.float32), random.integers(-9, 9, (k, n)).astype(np.float32)
    for width, height in (first, second, first):
        out = np.zeros((m, n), np.float32)
        kernel[(-(-n // width), -(-m // height)), (width, height)](a, b, out)
        np.testing.assert_array_equal(out, a @ b)
    assert len(kernel.overloads) == 1


@pytest.mark.cpu
@pytest.mark.parametrize(("first", "second"), [((16, 16), (5, 7)), ((5, 7), (16, 16))])
def test_the_first_launch_decides_which_rows_have_a_copy(first, second):
    @cuda.jit
    def flipped(x, out):
        tile = cuda.shared.array((16, 16), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        tile[ty, tx] = x[ty, tx]
        cuda.syncthreads()
        if tx > 0:
            out[ty, tx] = tile[ty, cuda.blockDim.x - tx]

    for block in (first, second):
        run(flipped, 1, block, np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32))
    assert len(flipped.overloads) == 1
    assert any("known-row-length" in names for _, _, names in _weft.plan_features(flipped)) == (first == (16, 16))


def strided():
    @cuda.jit
    def strided(x, counts, sums):
        found = cuda.shared.array(64, np.int32)
        parts = cuda.shared.array(1024, np.int64)
        t = cuda.threadIdx.x
        for k in range(t, 64, cuda.blockDim.x):
            found[k] = 0
        cuda.syncthreads()
        total = 0
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            cuda.atomic.add(found, min(max(x[i] + 32, 0), 63), 1)
            total += x[i]
        parts[t] = total
        cuda.syncthreads()
        for k in range(t, 64, cuda.blockDim.x):
            cuda.atomic.add(counts, k, found[k])
        if t == 0:
            total = 0
            for k in range(cuda.blockDim.x):
                total += parts[k]
            cuda.atomic.add(sums, 0, total)

    return strided


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations([16, 64, 1000, 3], 2)])
def test_grid_stride_loops_of_other_blocks(first, second):
    kernel = strided()
    x = np.random.default_rng(2).integers(-40, 40, 5000).astype(np.int32)
    for threads in (first, second):
        run(kernel, 3, threads, x, np.zeros(64, np.int32), np.zeros(1, np.int64))


def lanes():
    @cuda.jit
    def lanes(x, out):
        i = cuda.blockIdx.x * cuda.blockDim.x * cuda.blockDim.y + cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
        value = x[i]
        for by in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, by)
        out[i] = value * (cuda.threadIdx.x + 1)

    return lanes


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations([(32, 2), (64, 1), (16, 4)], 2)])
def test_rows_of_one_warp_and_others(first, second):
    kernel = lanes()
    for block in (first, second):
        run(kernel, 4, block, np.arange(256, dtype=np.int64), np.zeros(256, np.int64))
