"""Dynamic programming on int32: cheapest paths by rows, alignment and edit distance by anti-diagonals."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random_bytes, sized

ROWS = 16
WIDE = 256
INNER = WIDE - 2 * ROWS
LENGTH = 64


def make_pathfinder(cuda):
    @cuda.jit
    def pathfinder(wall, start, out):
        cost = cuda.shared.array(WIDE, np.int32)
        tx = cuda.threadIdx.x
        columns = wall.shape[1]
        x = cuda.blockIdx.x * INNER + tx - ROWS
        inside = x >= 0 and x < columns
        if inside:
            cost[tx] = start[x]
        cuda.syncthreads()
        left = tx - 1 if x > 0 else tx
        right = tx + 1 if x < columns - 1 else tx
        best = 0
        for row in range(ROWS):
            known = inside and row < tx and tx < WIDE - 1 - row
            if known:
                best = min(cost[tx], min(cost[left], cost[right])) + wall[row, x]
            cuda.syncthreads()
            if known:
                cost[tx] = best
            cuda.syncthreads()
        if inside and tx >= ROWS and tx < WIDE - ROWS:
            out[x] = best

    return pathfinder


PATHFINDER_CPP = f"""
#define ROWS {ROWS}
#define WIDE {WIDE}
extern "C" __global__ void peer(const int* wall, const int* start, int* out, int columns) {{
    __shared__ int cost[WIDE];
    int tx = threadIdx.x, x = blockIdx.x * (WIDE - 2 * ROWS) + tx - ROWS;
    bool inside = x >= 0 && x < columns;
    if (inside) cost[tx] = start[x];
    __syncthreads();
    int left = x > 0 ? tx - 1 : tx, right = x < columns - 1 ? tx + 1 : tx, best = 0;
    for (int row = 0; row < ROWS; ++row) {{
        bool known = inside && row < tx && tx < WIDE - 1 - row;
        if (known) best = min(cost[tx], min(cost[left], cost[right])) + wall[row * columns + x];
        __syncthreads();
        if (known) cost[tx] = best;
        __syncthreads();
    }}
    if (inside && tx >= ROWS && tx < WIDE - ROWS) out[x] = best;
}}
"""


def pathfinder_work(size: str) -> Work:
    columns = sized(size, 1 << 21, 600, cpu=1 << 20)
    wall = np.random.default_rng(60).integers(0, 10, (ROWS + 1, columns), dtype=np.int32)
    return Work(
        grid=(blocks(columns, INNER),),
        block=(WIDE,),
        args=(wall[1:].copy(), wall[0].copy(), np.empty(columns, np.int32)),
        outputs=(2,),
        extents=(columns,),
        n_bytes=4 * (ROWS + 2) * columns,
    )


def pathfinder_reference(xp, args):
    wall, cost = args[0].astype(xp.int64), args[1].astype(xp.int64)
    for row in range(ROWS):
        padded = xp.pad(cost, 1, mode="edge")
        cost = xp.minimum(cost, xp.minimum(padded[:-2], padded[2:])) + wall[row]
    return (cost,)


def make_alignment(cuda):
    @cuda.jit
    def alignment(a, b, gap, out):
        score = cuda.shared.array((LENGTH + 1, LENGTH + 1), np.int32)
        tid = cuda.threadIdx.x
        pair = cuda.blockIdx.x
        score[tid + 1, 0] = -(tid + 1) * gap
        score[0, tid + 1] = -(tid + 1) * gap
        if tid == 0:
            score[0, 0] = 0
        cuda.syncthreads()
        i = tid + 1
        for diagonal in range(2 * LENGTH - 1):
            j = diagonal - tid + 1
            if j >= 1 and j <= LENGTH:
                match = 2 if a[pair, i - 1] == b[pair, j - 1] else -1
                best = score[i - 1, j - 1] + match
                best = max(best, score[i - 1, j] - gap)
                best = max(best, score[i, j - 1] - gap)
                score[i, j] = best
            cuda.syncthreads()
        for row in range(LENGTH):
            out[pair, row, tid] = score[row + 1, tid + 1]

    return alignment


ALIGNMENT_CPP = f"""
#define LENGTH {LENGTH}
extern "C" __global__ void peer(const int* a, const int* b, int gap, int* out) {{
    __shared__ int score[LENGTH + 1][LENGTH + 1];
    int tid = threadIdx.x, pair = blockIdx.x;
    score[tid + 1][0] = -(tid + 1) * gap;
    score[0][tid + 1] = -(tid + 1) * gap;
    if (tid == 0) score[0][0] = 0;
    __syncthreads();
    int i = tid + 1;
    for (int diagonal = 0; diagonal < 2 * LENGTH - 1; ++diagonal) {{
        int j = diagonal - tid + 1;
        if (j >= 1 && j <= LENGTH) {{
            int match = a[pair * LENGTH + i - 1] == b[pair * LENGTH + j - 1] ? 2 : -1;
            int best = score[i - 1][j - 1] + match;
            best = max(best, score[i - 1][j] - gap);
            best = max(best, score[i][j - 1] - gap);
            score[i][j] = best;
        }}
        __syncthreads();
    }}
    for (int row = 0; row < LENGTH; ++row) out[(pair * LENGTH + row) * LENGTH + tid] = score[row + 1][tid + 1];
}}
"""


def alignment_work(size: str) -> Work:
    n = sized(size, 4096, 3, cpu=2048)
    letters = np.random.default_rng(61).integers(0, 4, (2, n, LENGTH), dtype=np.int32)
    return Work(
        grid=(n,),
        block=(LENGTH,),
        args=(letters[0].copy(), letters[1].copy(), np.int32(1), np.empty((n, LENGTH, LENGTH), np.int32)),
        outputs=(3,),
        extents=(),
        n_bytes=4 * n * LENGTH * (LENGTH + 2),
        flops=5 * n * LENGTH * LENGTH,
    )


def alignment_reference(xp, args):
    a, b, gap, out = args
    n, gap = len(out), int(gap)
    score = xp.zeros((n, LENGTH + 1, LENGTH + 1), xp.int64)
    score[:, :, 0] = score[:, 0, :] = -gap * xp.arange(LENGTH + 1)
    match = xp.where(a[:, :, None] == b[:, None, :], 2, -1)
    for diagonal in range(2, 2 * LENGTH + 1):
        i = xp.arange(max(1, diagonal - LENGTH), min(LENGTH, diagonal - 1) + 1)
        j = diagonal - i
        skipped = xp.maximum(score[:, i - 1, j], score[:, i, j - 1]) - gap
        score[:, i, j] = xp.maximum(score[:, i - 1, j - 1] + match[:, i - 1, j - 1], skipped)
    return (score[:, 1:, 1:],)


def make_edit_distance(cuda):
    @cuda.jit
    def edit_distance(a, b, out):
        older = cuda.shared.array(129, np.int32)
        old = cuda.shared.array(129, np.int32)
        tid = cuda.threadIdx.x
        pair = cuda.blockIdx.x
        n = a.shape[1]
        # Diagonal d holds the cell (i, d - i) at i; thread tid computes the row i = tid + 1.
        i = tid + 1
        older[i] = 0
        old[i] = 1
        if tid == 0:
            older[0] = 0
            old[0] = 1
        cuda.syncthreads()
        for d in range(2, 2 * n + 1):
            j = d - i
            value = 0
            if j >= 1 and j <= n:
                cost = 0 if a[pair, i - 1] == b[pair, j - 1] else 1
                value = min(older[i - 1] + cost, min(old[i - 1], old[i]) + 1)
            elif j == 0:
                value = i
            cuda.syncthreads()
            older[i] = old[i]
            if tid == 0:
                older[0] = old[0]
            cuda.syncthreads()
            if j >= 0 and j <= n:
                old[i] = value
            if tid == 0:
                old[0] = d
            cuda.syncthreads()
        if tid == n - 1:
            out[pair] = old[n]

    return edit_distance


EDIT_DISTANCE_CPP = """
extern "C" __global__ void peer(const unsigned char* a, const unsigned char* b, int* out, int n) {
    __shared__ int older[129], old[129];
    int tid = threadIdx.x, pair = blockIdx.x, i = tid + 1;
    older[i] = 0;
    old[i] = 1;
    if (tid == 0) {
        older[0] = 0;
        old[0] = 1;
    }
    __syncthreads();
    for (int d = 2; d <= 2 * n; ++d) {
        int j = d - i, value = 0;
        if (j >= 1 && j <= n) {
            int cost = a[pair * n + i - 1] == b[pair * n + j - 1] ? 0 : 1;
            value = min(older[i - 1] + cost, min(old[i - 1], old[i]) + 1);
        } else if (j == 0) {
            value = i;
        }
        __syncthreads();
        older[i] = old[i];
        if (tid == 0) older[0] = old[0];
        __syncthreads();
        if (j >= 0 && j <= n) old[i] = value;
        if (tid == 0) old[0] = d;
        __syncthreads();
    }
    if (tid == n - 1) out[pair] = old[n];
}
"""


def edit_distance_work(size: str) -> Work:
    pairs, n = sized(size, (8192, 128), (3, 40), cpu=(1024, 128))
    letters = random_bytes(62, 2, pairs, n) & np.uint8(3)
    return Work(
        grid=(pairs,),
        block=(n,),
        args=(letters[0].copy(), letters[1].copy(), np.empty(pairs, np.int32)),
        outputs=(2,),
        extents=(n,),
        n_bytes=2 * pairs * n,
        flops=5 * pairs * n * n,
    )


def edit_distance_reference(xp, args):
    a, b, _ = args
    pairs, n = a.shape
    cells = xp.zeros((pairs, n + 1, n + 1), xp.int32)
    cells[:, :, 0] = cells[:, 0, :] = xp.arange(n + 1)
    for d in range(2, 2 * n + 1):
        i = xp.arange(max(1, d - n), min(n, d - 1) + 1)
        j = d - i
        changed = cells[:, i - 1, j - 1] + (a[:, i - 1] != b[:, j - 1])
        cells[:, i, j] = xp.minimum(changed, xp.minimum(cells[:, i - 1, j], cells[:, i, j - 1]) + 1)
    return (cells[:, n, n],)


CASES = (
    Case(
        "pathfinder",
        make_pathfinder,
        "void(int32[:, ::1], int32[::1], int32[::1])",
        PATHFINDER_CPP,
        pathfinder_work,
        pathfinder_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "Needleman-Wunsch, a block a pair",
        make_alignment,
        "void(int32[:, ::1], int32[:, ::1], int32, int32[:, :, ::1])",
        ALIGNMENT_CPP,
        alignment_work,
        alignment_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "edit distance by anti-diagonals",
        make_edit_distance,
        "void(uint8[:, ::1], uint8[:, ::1], int32[::1])",
        EDIT_DISTANCE_CPP,
        edit_distance_work,
        edit_distance_reference,
        tolerance=0.0,
        wider=True,
    ),
)
