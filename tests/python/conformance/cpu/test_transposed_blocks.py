"""Blocks with barriers and arrays indexed `[x, y]`: thread loops may run along `y`; a corner that returns."""

import numpy as np
import pytest
from harness import module, run
from weft import cuda

BLOCKS = [(8, 8), (8, 5), (5, 8), (8, 3, 2)]


def values(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


@cuda.jit
def product(a, b, c):
    left = cuda.shared.array((8, 8), np.float32)
    right = cuda.shared.array((8, 8), np.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if x >= c.shape[0] and y >= c.shape[1]:
        return
    total = np.float32(0)
    for i in range((a.shape[1] + 7) // 8):
        left[tx, ty] = 0
        right[tx, ty] = 0
        if x < a.shape[0] and ty + i * 8 < a.shape[1]:
            left[tx, ty] = a[x, ty + i * 8]
        if tx + i * 8 < b.shape[0] and y < b.shape[1]:
            right[tx, ty] = b[tx + i * 8, y]
        cuda.syncthreads()
        for j in range(8):
            total += left[tx, j] * right[j, ty]
        cuda.syncthreads()
    if x < c.shape[0] and y < c.shape[1]:
        c[x, y] = total


@pytest.mark.parametrize("shape", [(16, 24, 8), (16, 16, 16), (32, 8, 40)])
def test_tiles_of_a_product(shape):
    m, n, k = shape
    run(product, (m // 8, n // 8), (8, 8), values(1, m, k), values(2, k, n), np.zeros((m, n), np.float32))


@cuda.jit
def moved(a, out):
    tile = cuda.shared.array((9, 11), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * cuda.blockDim.x + tx
    y = cuda.blockIdx.y * cuda.blockDim.y + ty
    inside = x < a.shape[0] and y < a.shape[1] and cuda.threadIdx.z == 0
    if inside:
        tile[tx, ty] = a[x, y]
    many = cuda.syncthreads_count(inside)
    some = cuda.syncthreads_or(tx == 2 and ty == 1)
    if inside:
        right = tile[tx, ty + 1] if ty + 1 < cuda.blockDim.y and y + 1 < a.shape[1] else np.float32(-1)
        below = tile[tx + 1, ty] if tx + 1 < cuda.blockDim.x and x + 1 < a.shape[0] else np.float32(-2)
        out[x, y] = right + 100 * below + 10000 * many + (1000000 if some else 0)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(20, 30), (3, 1), (1, 17), (8, 8)])
def test_neighbors_in_a_tile(block, shape):
    m, n = shape
    run(moved, (-(-m // block[0]), -(-n // block[1])), block, values(3, m, n), np.zeros((m, n), np.float32))


@cuda.jit
def linear(a, out):
    """Thread indices as in CUDA, in shared memory and in atomic sums."""
    counts = cuda.shared.array(4, np.int32)
    order = cuda.shared.array(64, np.int32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    t = ty * cuda.blockDim.x + tx
    n = cuda.blockDim.x * cuda.blockDim.y
    if t < 4:
        counts[t] = 0
    order[n - 1 - t] = t
    cuda.syncthreads()
    cuda.atomic.add(counts, (tx + 2 * ty) % 4, 1)
    cuda.syncthreads()
    x = cuda.blockIdx.x * cuda.blockDim.x + tx
    y = cuda.blockIdx.y * cuda.blockDim.y + ty
    if x < out.shape[0] and y < out.shape[1]:
        out[x, y] = a[x, y] + order[t] + 100 * counts[(tx + ty) % 4]


@pytest.mark.parametrize("block", [(8, 8), (8, 5), (5, 8)])
def test_numbers_of_threads(block):
    grid = (-(-20 // block[0]), -(-30 // block[1]))
    run(linear, grid, block, values(4, 20, 30), np.zeros((20, 30), np.float32))


CORNER = """
import numpy as np
from weft import cuda

@cuda.jit
def kernel(m, n, out):
    tile = cuda.shared.array((8, 8), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = 7
    cuda.syncthreads()
    if CONDITION:
        return
    tile[ty, tx] = 1 + tx + 10 * ty
    cuda.syncthreads()
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[ty, tx] + 1000 * tile[ty, 7 - tx] + 1000000 * tile[7 - ty, tx]
"""


@pytest.mark.parametrize(
    "condition",
    ["x >= m and y >= n", "y >= n and x > m", "x < m and y >= n and y != 3", "not x > m and n > y", "m == x and y < n"],
)
@pytest.mark.parametrize("ends", [(13, 9), (0, 0), (-3, 100), (2**63 - 1, 5), (-(2**63), 5), (2**62, 4), (8, 16)])
def test_a_corner_returns(condition, ends):
    m, n = ends
    kernel = module(CORNER.replace("CONDITION", condition)).kernel
    out = np.zeros((16, 24), np.float32)
    kernel[(3, 2), (8, 8)](m, n, out)
    y, x = np.mgrid[0:16, 0:24]
    returns = eval(f"lambda x, y: {condition}", {"m": m, "n": n})
    gone = np.array([[returns(i, j) for i in range(24)] for j in range(16)])
    tile = np.where(gone, 7, 1 + x % 8 + 10 * (y % 8))
    mirrored_x = tile[y, x // 8 * 8 + 7 - x % 8]
    mirrored_y = tile[y // 8 * 8 + 7 - y % 8, x]
    expected = np.where(gone, 0, tile + 1000.0 * mirrored_x + 1000000.0 * mirrored_y).astype(np.float32)
    np.testing.assert_array_equal(out, expected)
