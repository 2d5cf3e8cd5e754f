"""Sparse matrices and graphs in CSR: products with a vector by threads and by warps, and one step of a BFS."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)


def random_csr(seed: int, n: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """The start of each of n rows, and its columns: from 0 to `longest` of them."""
    numbers = np.random.default_rng(seed)
    starts = np.zeros(n + 1, np.int32)
    np.cumsum(numbers.integers(0, longest + 1, n), out=starts[1:])
    return starts, numbers.integers(0, n, int(starts[-1]), dtype=np.int32)


def row_of_each(xp, starts, count):
    return xp.searchsorted(starts[1:], xp.arange(count, dtype=starts.dtype), side="right")


def make_by_thread(cuda):
    @cuda.jit
    def spmv(starts, columns, values, x, y):
        row = cuda.grid(1)
        if row < y.shape[0]:
            total = ZERO
            for k in range(starts[row], starts[row + 1]):
                total += values[k] * x[columns[k]]
            y[row] = total

    return spmv


BY_THREAD_CPP = """
extern "C" __global__ void peer(const int* starts, const int* columns, const float* values, const float* x, float* y,
                                int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float total = 0.0f;
        for (int k = starts[row]; k < starts[row + 1]; ++k) total += values[k] * x[columns[k]];
        y[row] = total;
    }
}
"""


def make_by_warp(cuda):
    @cuda.jit
    def spmv_warp(starts, columns, values, x, y):
        row = cuda.grid(1) // 32
        lane = cuda.threadIdx.x % 32
        if row < y.shape[0]:
            total = ZERO
            for k in range(starts[row] + lane, starts[row + 1], 32):
                total += values[k] * x[columns[k]]
            offset = 16
            while offset > 0:
                total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
                offset //= 2
            if lane == 0:
                y[row] = total

    return spmv_warp


BY_WARP_CPP = """
extern "C" __global__ void peer(const int* starts, const int* columns, const float* values, const float* x, float* y,
                                int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row < n) {
        float total = 0.0f;
        for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) total += values[k] * x[columns[k]];
        for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffff, total, offset);
        if (lane == 0) y[row] = total;
    }
}
"""


def spmv_work(n: int, longest: int, per_block: int) -> Work:
    starts, columns = random_csr(40, n, longest)
    return Work(
        grid=(blocks(n, per_block),),
        block=(256,),
        args=(starts, columns, random(41, columns.size), random(42, n), np.empty(n, np.float32)),
        outputs=(4,),
        extents=(n,),
        n_bytes=8 * columns.size + 12 * n,
        flops=2 * columns.size,
    )


def spmv_reference(xp, args):
    starts, columns, values, x, y = args
    products = values.astype(xp.float64) * x[columns]
    return (xp.bincount(row_of_each(xp, starts, columns.size), weights=products, minlength=y.size),)


def make_bfs(cuda):
    @cuda.jit
    def bfs(starts, neighbors, level, depth, out, changed):
        node = cuda.grid(1)
        if node < level.shape[0] and level[node] == depth:
            for k in range(starts[node], starts[node + 1]):
                other = neighbors[k]
                if level[other] < 0:
                    out[other] = depth + 1
                    changed[0] = 1

    return bfs


BFS_CPP = """
extern "C" __global__ void peer(const int* starts, const int* neighbors, const int* level, int depth, int* out,
                                int* changed, int n) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < n && level[node] == depth) {
        for (int k = starts[node]; k < starts[node + 1]; ++k) {
            int other = neighbors[k];
            if (level[other] < 0) {
                out[other] = depth + 1;
                changed[0] = 1;
            }
        }
    }
}
"""


def bfs_work(size: str) -> Work:
    n = sized(size, 1 << 21, 700, cpu=1 << 20)
    starts, neighbors = random_csr(43, n, 12)
    # Half of the nodes have not been reached, and an eighth are in the current level.
    level = np.random.default_rng(44).choice(np.array([-1, -1, -1, -1, 1, 2, 2, 3], np.int32), n)
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(starts, neighbors, level, np.int32(3), np.empty(n, np.int32), np.empty(1, np.int32)),
        outputs=(4, 5),
        extents=(n,),
        n_bytes=12 * n + 4 * neighbors.size // 8,
    )


def bfs_reference(xp, args):
    starts, neighbors, level, depth, out, _ = args
    reached = neighbors[level[row_of_each(xp, starts, neighbors.size)] == depth]
    reached = reached[level[reached] < 0]
    expected = xp.zeros(out.shape, xp.int32)
    expected[reached] = int(depth) + 1
    return expected, xp.ones(1, xp.int32)


SPMV = "void(int32[::1], int32[::1], float32[::1], float32[::1], float32[::1])"
CASES = (
    Case(
        "sparse by vector, a thread a row",
        make_by_thread,
        SPMV,
        BY_THREAD_CPP,
        lambda size: spmv_work(*sized(size, (1 << 19, 32, 256), (500, 12, 256))),
        spmv_reference,
    ),
    Case(
        "sparse by vector, a warp a row",
        make_by_warp,
        SPMV,
        BY_WARP_CPP,
        lambda size: spmv_work(*sized(size, (1 << 17, 200, 8), (50, 70, 8), cpu=(1 << 16, 200, 8))),
        spmv_reference,
    ),
    Case(
        "BFS, one step",
        make_bfs,
        "void(int32[::1], int32[::1], int32[::1], int32, int32[::1], int32[::1])",
        BFS_CPP,
        bfs_work,
        bfs_reference,
        tolerance=0.0,
        accumulates=True,
    ),
)
