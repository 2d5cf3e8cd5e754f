"""Dynamic programming by anti-diagonals on int32: local alignment with affine gaps, and dynamic time warping."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, random_bytes, sized

MOST = 128
CELLS = MOST + 1
BLOSUM = (
    (5, -4, -2, -4),
    (-4, 6, -4, -1),
    (-2, -4, 5, -3),
    (-4, -1, -3, 6),
)
SCORES = np.array(BLOSUM, np.int32)
LOWEST = -(1 << 28)


def make_affine(cuda):
    @cuda.jit
    def smith_waterman(queries, targets, gap_open, gap_extend, best):
        # Thread i computes row i + 1; the scores of the previous row arrive through shared memory.
        above = cuda.shared.array((2, CELLS), np.int32)
        above_gap = cuda.shared.array((2, CELLS), np.int32)
        scores = cuda.const.array_like(SCORES)
        i = cuda.threadIdx.x
        pair = cuda.blockIdx.x
        rows = queries.shape[1]
        columns = targets.shape[1]
        for side in range(2):
            above[side, i + 1] = 0
            above_gap[side, i + 1] = LOWEST
            if i == 0:
                above[side, 0] = 0
                above_gap[side, 0] = LOWEST
        if i == 0:
            best[pair] = 0
        letter = queries[pair, i]
        left = 0
        left_gap = LOWEST
        diagonal = 0
        highest = 0
        cuda.syncthreads()
        for step in range(rows + columns - 1):
            source = step % 2
            j = step - i
            if 0 <= j < columns:
                up = above[source, i]
                left_gap = max(left_gap - gap_extend, left - gap_open)
                up_gap = max(above_gap[source, i] - gap_extend, up - gap_open)
                score = diagonal + scores[letter, targets[pair, j]]
                score = max(max(score, 0), max(left_gap, up_gap))
                above[1 - source, i + 1] = score
                above_gap[1 - source, i + 1] = up_gap
                diagonal = up
                left = score
                if score > highest:
                    highest = score
            cuda.syncthreads()
        cuda.atomic.max(best, pair, highest)

    return smith_waterman


AFFINE_CPP = f"""
#define CELLS {CELLS}
#define LOWEST (-(1 << 28))
__constant__ int scores[4][4] = {{{", ".join(str(score) for score in SCORES.ravel())}}};
extern "C" __global__ void peer(const unsigned char* queries, const unsigned char* targets, int gap_open,
                                int gap_extend, int* best, int rows, int columns) {{
    __shared__ int above[2][CELLS], above_gap[2][CELLS];
    int i = threadIdx.x, pair = blockIdx.x;
    for (int side = 0; side < 2; ++side) {{
        above[side][i + 1] = 0;
        above_gap[side][i + 1] = LOWEST;
        if (i == 0) {{
            above[side][0] = 0;
            above_gap[side][0] = LOWEST;
        }}
    }}
    if (i == 0) best[pair] = 0;
    unsigned char letter = queries[pair * rows + i];
    int left = 0, left_gap = LOWEST, diagonal = 0, highest = 0;
    __syncthreads();
    for (int step = 0; step < rows + columns - 1; ++step) {{
        int source = step % 2, j = step - i;
        if (0 <= j && j < columns) {{
            int up = above[source][i];
            left_gap = max(left_gap - gap_extend, left - gap_open);
            int up_gap = max(above_gap[source][i] - gap_extend, up - gap_open);
            int score = diagonal + scores[letter][targets[pair * columns + j]];
            score = max(max(score, 0), max(left_gap, up_gap));
            above[1 - source][i + 1] = score;
            above_gap[1 - source][i + 1] = up_gap;
            diagonal = up;
            left = score;
            if (score > highest) highest = score;
        }}
        __syncthreads();
    }}
    atomicMax(&best[pair], highest);
}}
"""


def affine_work(size: str) -> Work:
    pairs, rows, columns = sized(size, (4096, 128, 512), (3, 37, 50), cpu=(256, 128, 256))
    return Work(
        grid=(pairs,),
        block=(rows,),
        args=(
            random_bytes(160, pairs, rows) & np.uint8(3), random_bytes(161, pairs, columns) & np.uint8(3),
            np.int32(8), np.int32(2), np.empty(pairs, np.int32),
        ),
        outputs=(4,),
        extents=(rows, columns),
        n_bytes=pairs * (rows + columns + 4),
        flops=10 * pairs * rows * columns,
    )  # fmt: skip


def affine_reference(xp, args):
    queries, targets, gap_open, gap_extend, _ = args
    gap_open, gap_extend = int(gap_open), int(gap_extend)
    (pairs, rows), columns = queries.shape, targets.shape[1]
    scores = xp.asarray(SCORES).astype(xp.int64)
    # By anti-diagonals, at index i + 1 for row i; the border has the scores 0.
    older, old, left_gap, up_gap = (xp.zeros((pairs, rows + 1), xp.int64) for _ in range(4))
    left_gap += LOWEST
    up_gap += LOWEST
    best = xp.zeros(pairs, xp.int64)
    for step in range(rows + columns - 1):
        i = xp.arange(max(0, step - columns + 1), min(rows - 1, step) + 1)
        j = step - i
        new, new_left, new_up = xp.zeros_like(old), xp.full_like(old, LOWEST), xp.full_like(old, LOWEST)
        new_left[:, i + 1] = xp.maximum(left_gap[:, i + 1] - gap_extend, old[:, i + 1] - gap_open)
        new_up[:, i + 1] = xp.maximum(up_gap[:, i] - gap_extend, old[:, i] - gap_open)
        score = older[:, i] + scores[queries[:, i], targets[:, j]]
        new[:, i + 1] = xp.maximum(xp.maximum(score, 0), xp.maximum(new_left[:, i + 1], new_up[:, i + 1]))
        older, old, left_gap, up_gap = old, new, new_left, new_up
        best = xp.maximum(best, new.max(axis=1))
    return (best,)


def make_warping(cuda):
    @cuda.jit
    def time_warping(first, second, window, distance):
        # Three diagonals; diagonal d has the cell (i, d - i) at i + 1.
        cost = cuda.shared.array((3, 258), np.int32)
        tid = cuda.threadIdx.x
        b = cuda.blockIdx.x
        n = first.shape[0]
        unreachable = 1 << 30
        for k in range(tid, 3 * 258, cuda.blockDim.x):
            cost[k // 258, k % 258] = unreachable
        cuda.syncthreads()
        if tid == 0:
            cost[1, 0] = 0
        cuda.syncthreads()
        d = 0
        while d < 2 * n - 1:
            now = d % 3
            previous = (d + 2) % 3
            before = (d + 1) % 3
            i = tid
            j = d - i
            value = unreachable
            if j >= 0 and j < n and abs(i - j) <= window:
                difference = first[i, b] - second[j, b]
                if difference < 0:
                    difference = -difference
                smallest = min(cost[before, i], cost[previous, i], cost[previous, i + 1])
                value = min(difference + smallest, unreachable)
            cost[now, i + 1] = value
            if i == 0:
                cost[now, 0] = unreachable
            cuda.syncthreads()
            d += 1
        if tid == n - 1:
            distance[b] = cost[(2 * n - 2) % 3, n]

    return time_warping


WARPING_CPP = """
extern "C" __global__ void peer(const int* first, const int* second, int window, int* distance, int n, int pairs) {
    __shared__ int cost[3][258];
    int tid = threadIdx.x, b = blockIdx.x;
    const int unreachable = 1 << 30;
    for (int k = tid; k < 3 * 258; k += blockDim.x) cost[k / 258][k % 258] = unreachable;
    __syncthreads();
    if (tid == 0) cost[1][0] = 0;
    __syncthreads();
    for (int d = 0; d < 2 * n - 1; ++d) {
        int now = d % 3, previous = (d + 2) % 3, before = (d + 1) % 3;
        int i = tid, j = d - i, value = unreachable;
        if (j >= 0 && j < n && abs(i - j) <= window) {
            int difference = first[i * pairs + b] - second[j * pairs + b];
            if (difference < 0) difference = -difference;
            int smallest = min(cost[before][i], min(cost[previous][i], cost[previous][i + 1]));
            value = min(difference + smallest, unreachable);
        }
        cost[now][i + 1] = value;
        if (i == 0) cost[now][0] = unreachable;
        __syncthreads();
    }
    if (tid == n - 1) distance[b] = cost[(2 * n - 2) % 3][n];
}
"""


def warping_work(size: str) -> Work:
    pairs, n, window = sized(size, (4096, 256, 64), (3, 41, 12), cpu=(1024, 256, 64))
    steps = np.random.default_rng(162).integers(-9, 10, (2, n, pairs), dtype=np.int32)
    series = np.cumsum(steps, axis=1, dtype=np.int32)
    return Work(
        grid=(pairs,),
        block=(n,),
        args=(series[0].copy(), series[1].copy(), np.int32(window), np.empty(pairs, np.int32)),
        outputs=(3,),
        extents=(n, pairs),
        n_bytes=8 * pairs * n,
        flops=10 * pairs * n * window,
    )


def warping_reference(xp, args):
    first, second, window, _ = args
    n, pairs = first.shape
    unreachable = 1 << 30
    cells = xp.full((n + 1, n + 1, pairs), unreachable, xp.int64)
    cells[0, 0] = 0
    for d in range(2 * n - 1):
        i = xp.arange(max(0, d - n + 1), min(n - 1, d) + 1)
        i = i[abs(2 * i - d) <= int(window)]
        j = d - i
        smallest = xp.minimum(cells[i, j], xp.minimum(cells[i, j + 1], cells[i + 1, j]))
        difference = abs(first[i].astype(xp.int64) - second[j])
        cells[i + 1, j + 1] = xp.minimum(difference + smallest, unreachable)
    return (cells[n, n],)


CASES = (
    Case(
        "Smith-Waterman with affine gaps",
        make_affine,
        "void(uint8[:, ::1], uint8[:, ::1], int32, int32, int32[::1])",
        AFFINE_CPP,
        affine_work,
        affine_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "dynamic time warping in a window",
        make_warping,
        "void(int32[:, ::1], int32[:, ::1], int32, int32[::1])",
        WARPING_CPP,
        warping_work,
        warping_reference,
        tolerance=0.0,
        wider=True,
    ),
)
