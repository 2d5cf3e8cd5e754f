"""Loops in which the threads of a block share the cells of a tile: the CPU runs them row by row, once for the block.

The oracle is the kernel run by CPython. The blocks have the shape that the kernel is written for, and others.
"""

import numpy as np
import pytest
from harness import run
from weft import _weft, cuda

WIDE, HIGH, HALO = 32, 4, 1
TILE_WIDE, TILE_HIGH = WIDE + 2 * HALO, HIGH + 2 * HALO
CELLS = TILE_WIDE * TILE_HIGH


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.int32)


def features(kernel):
    return {name for _, _, names in _weft.plan_features(kernel) for name in names}


@cuda.jit
def steps_in_a_tile(field, n_steps, out):
    tile = cuda.shared.array((2, TILE_HIGH, TILE_WIDE), np.int32)
    height, width = field.shape
    x0 = cuda.blockIdx.x * WIDE - HALO
    y0 = cuda.blockIdx.y * HIGH - HALO
    tid = cuda.threadIdx.y * WIDE + cuda.threadIdx.x
    for k in range(tid, CELLS, WIDE * HIGH):
        j, i = divmod(k, TILE_WIDE)
        x = x0 + i
        y = y0 + j
        if 0 <= x < width and 0 <= y < height:
            tile[0, j, i] = field[y, x]
        else:
            tile[0, j, i] = 20
        tile[1, j, i] = 20
    cuda.syncthreads()
    source = 0
    for _ in range(n_steps):
        for k in range(tid, CELLS, WIDE * HIGH):
            j, i = divmod(k, TILE_WIDE)
            if 0 < i < TILE_WIDE - 1 and 0 < j < TILE_HIGH - 1:
                around = tile[source, j - 1, i] + tile[source, j + 1, i] + tile[source, j, i - 1]
                tile[1 - source, j, i] = around - 3 * tile[source, j, i] + k
        cuda.syncthreads()
        source = 1 - source
    x = x0 + HALO + cuda.threadIdx.x
    y = y0 + HALO + cuda.threadIdx.y
    if x < width and y < height and cuda.threadIdx.y < HIGH and cuda.threadIdx.x < WIDE:
        out[y, x] = tile[source, cuda.threadIdx.y + HALO, cuda.threadIdx.x + HALO]


@pytest.mark.parametrize("block", [(WIDE, HIGH), (WIDE, HIGH, 2), (WIDE * HIGH, 1)])
@pytest.mark.parametrize("shape", [(9, 70), (4, 32), (3, 5)])
def test_tile_with_a_halo(block, shape):
    grid = (-(-shape[1] // WIDE), -(-shape[0] // HIGH))
    run(steps_in_a_tile, grid, block, numbers(*shape), 3, np.zeros(shape, np.int32))


@cuda.jit
def copy_in_rows(a, width, cells, out):
    tile = cuda.shared.array(600, np.int32)
    t = cuda.threadIdx.x
    for k in range(t, 600, cuda.blockDim.x):
        tile[k] = -k
    cuda.syncthreads()
    for k in range(t, cells, cuda.blockDim.x):
        row = k // width
        column = k % width
        tile[k] = a[row % a.shape[0], column % a.shape[1]] * (row + 1)
    cuda.syncthreads()
    for k in range(t, 600, cuda.blockDim.x):
        out[cuda.blockIdx.x, k] = tile[599 - k]


@pytest.mark.parametrize("block", [64, 40, 1, (32, 2)])
@pytest.mark.parametrize("width", [1, 16, 37, 64, 65])
@pytest.mark.parametrize("cells", [-3, 0, 1, 36, 37, 592, 600])
def test_width_and_cells_of_the_launch(block, width, cells):
    run(copy_in_rows, 2, block, numbers(11, 80), width, cells, np.zeros((2, 600), np.int32))


@cuda.jit
def chains(a, out):
    cells = cuda.shared.array(20 * 32, np.int64)
    t = cuda.threadIdx.x
    for k in range(t, 20 * 32, cuda.blockDim.x):
        # Each thread reads what it wrote in the iteration before.
        before = cells[k - cuda.blockDim.x] if k >= cuda.blockDim.x else 1
        cells[k] = before * 3 % 1009 + a[k // 32, k % 32]
    cuda.syncthreads()
    for k in range(t, 20 * 32, cuda.blockDim.x):
        out[k // 32, k % 32] = cells[k]


@pytest.mark.parametrize("block", [32, 64, 16, 100])
def test_a_thread_reads_what_it_wrote(block):
    run(chains, 1, block, numbers(20, 32), np.zeros((20, 32), np.int64))


@cuda.jit
def carries(a, out):
    sums = cuda.shared.array(64, np.int64)
    t = cuda.threadIdx.x
    total = 0
    last = -1
    for k in range(t, a.size, 64):
        total += a[k // 20, k % 20]
        last = k // 20
    sums[t] = total * 100 + last
    cuda.syncthreads()
    out[t] = sums[63 - t]


@cuda.jit
def knows_its_thread(a, out):
    tile = cuda.shared.array(200, np.int64)
    t = cuda.threadIdx.x
    for k in range(t, 200, 64):
        tile[k] = a[k // 20, k % 20] + t
    cuda.syncthreads()
    for k in range(t, 200, 64):
        if a[k // 20, k % 20] > 45:
            break
        out[k] = tile[199 - k]


@cuda.jit
def some_threads(a, out):
    tile = cuda.shared.array(200, np.int64)
    t = cuda.threadIdx.x
    for k in range(t, 200, 64):
        tile[k] = k
    cuda.syncthreads()
    if t < a[0, 0] % 64:
        for k in range(t, 200, 64):
            tile[k] = a[k // 20, k % 20] * 2
    cuda.syncthreads()
    for k in range(t, 200, 64):
        out[k] = tile[199 - k]


@pytest.mark.parametrize("kernel", [carries, knows_its_thread, some_threads])
def test_loops_that_stay(kernel):
    run(kernel, 1, 64, numbers(10, 20), np.zeros(200, np.int64))


@cuda.jit
def in_branches(a, rounds, out):
    tile = cuda.shared.array((8, 24), np.float32)
    t = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    threads = cuda.blockDim.x * cuda.blockDim.y
    for k in range(t, 8 * 24, threads):
        tile[k // 24, k % 24] = 0
    for r in range(rounds):
        cuda.syncthreads()
        if r % 2 == cuda.blockIdx.x % 2:
            for k in range(t, 8 * 24, threads):
                if k // 24 == r:
                    tile[k // 24, k % 24] += a[r, k % 24]
                elif k % 24 < r:
                    tile[k // 24, k % 24] = a[k // 24, r] * 2
            cuda.syncthreads()
    for k in range(t, 8 * 24, threads):
        out[cuda.blockIdx.x, k // 24, k % 24] = tile[k // 24, k % 24]


@pytest.mark.parametrize("block", [(32, 2), (24, 1), (8, 3), (5, 9)])
def test_uniform_branches(block):
    a = numbers(8, 24).astype(np.float32)
    run(in_branches, 2, block, a, 7, np.zeros((2, 8, 24), np.float32))


@pytest.mark.cpu
def test_which_loops_are_coalesced():
    a = numbers(20, 32)
    steps_in_a_tile[(1, 1), (WIDE, HIGH)](a, 1, np.zeros_like(a))
    copy_in_rows[1, 64](a, 20, 40, np.zeros((1, 600), np.int32))
    chains[1, 32](a, np.zeros((20, 32), np.int64))
    in_branches[1, (32, 2)](a.astype(np.float32), 2, np.zeros((1, 8, 24), np.float32))
    for kernel in (steps_in_a_tile, copy_in_rows, chains, in_branches):
        assert "loop-coalescing" in features(kernel)
    carries[1, 64](a, np.zeros(64, np.int64))
    assert "loop-coalescing" not in features(carries)
