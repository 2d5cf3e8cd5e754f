"""Dynamic programming by anti-diagonals in shared memory: Smith-Waterman with affine gaps, dynamic time warping."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, random, sized

LONGEST = 128
LETTERS = 24
NONE = -10000


def substitution_scores() -> np.ndarray:
    """A symmetric table like BLOSUM62."""
    table = np.random.default_rng(360).integers(-4, 3, (LETTERS, LETTERS))
    table = np.minimum(table, table.T)
    np.fill_diagonal(table, np.random.default_rng(361).integers(4, 12, LETTERS))
    return table.astype(np.int8)


def make_local_alignment(cuda):
    @cuda.jit
    def local_alignment(queries, lengths, targets, table, first_gap, next_gap, scores):
        cached = cuda.shared.array((LETTERS, LETTERS), np.int8)
        h = cuda.shared.array((3, LONGEST + 1), np.int32)
        f = cuda.shared.array((2, LONGEST + 1), np.int32)
        tid = cuda.threadIdx.x
        pair = cuda.blockIdx.x
        n = targets.shape[1]
        m = lengths[pair]
        for k in range(tid, LETTERS * LETTERS, cuda.blockDim.x):
            cached[k // LETTERS, k % LETTERS] = table[k // LETTERS, k % LETTERS]
        for k in range(3):
            h[k, tid + 1] = 0
        for k in range(2):
            f[k, tid + 1] = NONE
        if tid == 0:
            for k in range(3):
                h[k, 0] = 0
            for k in range(2):
                f[k, 0] = NONE
        cuda.syncthreads()
        letter = queries[pair, tid] if tid < m else 0
        e = NONE
        left = 0
        best = 0
        for diagonal in range(m + n - 1):
            j = diagonal - tid
            new = diagonal % 3
            old = (diagonal + 2) % 3
            older = (diagonal + 1) % 3
            if tid < m and j >= 0 and j < n:
                e = max(e - next_gap, left - first_gap)
                down = max(f[(diagonal + 1) % 2, tid] - next_gap, h[old, tid] - first_gap)
                here = h[older, tid] + cached[letter, targets[pair, j]]
                here = max(max(here, 0), max(e, down))
                h[new, tid + 1] = here
                f[diagonal % 2, tid + 1] = down
                left = here
                best = max(best, here)
            cuda.syncthreads()
        h[0, tid] = best
        cuda.syncthreads()
        stride = LONGEST // 2
        while stride > 0:
            if tid < stride:
                h[0, tid] = max(h[0, tid], h[0, tid + stride])
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            scores[pair] = h[0, 0]

    return local_alignment


LOCAL_ALIGNMENT_CPP = f"""
#define LONGEST {LONGEST}
#define LETTERS {LETTERS}
#define NONE ({NONE})
extern "C" __global__ void peer(const unsigned char* queries, const int* lengths, const unsigned char* targets,
                                const signed char* table, int first_gap, int next_gap, int* scores, int longest,
                                int n) {{
    __shared__ signed char cached[LETTERS][LETTERS];
    __shared__ int h[3][LONGEST + 1], f[2][LONGEST + 1];
    int tid = threadIdx.x, pair = blockIdx.x, m = lengths[pair];
    for (int k = tid; k < LETTERS * LETTERS; k += blockDim.x) cached[k / LETTERS][k % LETTERS] = table[k];
    for (int k = 0; k < 3; ++k) h[k][tid + 1] = 0;
    for (int k = 0; k < 2; ++k) f[k][tid + 1] = NONE;
    if (tid == 0) {{
        for (int k = 0; k < 3; ++k) h[k][0] = 0;
        for (int k = 0; k < 2; ++k) f[k][0] = NONE;
    }}
    __syncthreads();
    int letter = tid < m ? queries[pair * longest + tid] : 0;
    int e = NONE, left = 0, best = 0;
    for (int diagonal = 0; diagonal < m + n - 1; ++diagonal) {{
        int j = diagonal - tid;
        int newest = diagonal % 3, old = (diagonal + 2) % 3, older = (diagonal + 1) % 3;
        if (tid < m && j >= 0 && j < n) {{
            e = max(e - next_gap, left - first_gap);
            int down = max(f[(diagonal + 1) % 2][tid] - next_gap, h[old][tid] - first_gap);
            int here = h[older][tid] + cached[letter][targets[pair * n + j]];
            here = max(max(here, 0), max(e, down));
            h[newest][tid + 1] = here;
            f[diagonal % 2][tid + 1] = down;
            left = here;
            best = max(best, here);
        }}
        __syncthreads();
    }}
    h[0][tid] = best;
    __syncthreads();
    for (int stride = LONGEST / 2; stride > 0; stride /= 2) {{
        if (tid < stride) h[0][tid] = max(h[0][tid], h[0][tid + stride]);
        __syncthreads();
    }}
    if (tid == 0) scores[pair] = h[0][0];
}}
"""


def local_alignment_work(size: str) -> Work:
    pairs, n = sized(size, (8192, 256), (5, 70), cpu=(256, 256))
    numbers = np.random.default_rng(362)
    queries = numbers.integers(0, LETTERS, (pairs, LONGEST), dtype=np.uint8)
    targets = numbers.integers(0, LETTERS, (pairs, n), dtype=np.uint8)
    # The targets have parts of the queries, with a gap.
    targets[:, 5:30], targets[:, 33:60] = queries[:, 2:27], queries[:, 27:54]
    lengths = numbers.integers(LONGEST // 2, LONGEST + 1, pairs).astype(np.int32)
    return Work(
        grid=(pairs,),
        block=(LONGEST,),
        args=(queries, lengths, targets, substitution_scores(), np.int32(11), np.int32(1), np.empty(pairs, np.int32)),
        outputs=(6,),
        extents=(LONGEST, n),
        n_bytes=pairs * (LONGEST + n + 8),
        flops=9 * int(lengths.sum()) * n,
    )


def local_alignment_reference(xp, args):
    queries, lengths, targets, table, first_gap, next_gap, _ = args
    first_gap, next_gap = int(first_gap), int(next_gap)
    pairs, n = targets.shape
    h, f = xp.zeros((pairs, LONGEST + 1, n + 1), xp.int64), xp.full((pairs, LONGEST + 1, n + 1), NONE)
    e = f.copy()
    match = table[queries[:, :, None], targets[:, None, :]].astype(xp.int64)
    for diagonal in range(2, LONGEST + n + 1):
        i = xp.arange(max(1, diagonal - n), min(LONGEST, diagonal - 1) + 1)
        j = diagonal - i
        e[:, i, j] = xp.maximum(e[:, i, j - 1] - next_gap, h[:, i, j - 1] - first_gap)
        f[:, i, j] = xp.maximum(f[:, i - 1, j] - next_gap, h[:, i - 1, j] - first_gap)
        here = xp.maximum(h[:, i - 1, j - 1] + match[:, i - 1, j - 1], 0)
        h[:, i, j] = xp.maximum(here, xp.maximum(e[:, i, j], f[:, i, j]))
    inside = xp.arange(LONGEST + 1) <= lengths[:, None]
    return ((h.max(axis=2) * inside).max(axis=1),)


HUGE = np.float32(1e30)


def make_warping(cuda):
    @cuda.jit
    def warping(a, b, band, distances):
        cost = cuda.shared.array((3, LONGEST + 1), np.float32)
        series = cuda.shared.array(LONGEST, np.float32)
        i = cuda.threadIdx.x
        pair = cuda.blockIdx.x
        n = a.shape[1]
        for k in range(3):
            cost[k, i + 1] = HUGE
            if i == 0:
                cost[k, 0] = HUGE
        value = HUGE
        if i < n:
            value = a[pair, i]
            series[i] = b[pair, i]
        cuda.syncthreads()
        for diagonal in range(2 * n - 1):
            j = diagonal - i
            new = diagonal % 3
            old = (diagonal + 2) % 3
            older = (diagonal + 1) % 3
            here = HUGE
            if i < n and j >= 0 and j < n and abs(i - j) <= band:
                difference = value - series[j]
                least = min(cost[older, i], min(cost[old, i], cost[old, i + 1]))
                if diagonal == 0:
                    least = np.float32(0)
                here = difference * difference + least
            cost[new, i + 1] = here
            cuda.syncthreads()
        if i == n - 1:
            distances[pair] = cost[(2 * n - 2) % 3, n]

    return warping


WARPING_CPP = f"""
#define LONGEST {LONGEST}
#define HUGE_COST 1e30f
extern "C" __global__ void peer(const float* a, const float* b, int band, float* distances, int n) {{
    __shared__ float cost[3][LONGEST + 1], series[LONGEST];
    int i = threadIdx.x, pair = blockIdx.x;
    for (int k = 0; k < 3; ++k) {{
        cost[k][i + 1] = HUGE_COST;
        if (i == 0) cost[k][0] = HUGE_COST;
    }}
    float value = HUGE_COST;
    if (i < n) {{
        value = a[pair * n + i];
        series[i] = b[pair * n + i];
    }}
    __syncthreads();
    for (int diagonal = 0; diagonal < 2 * n - 1; ++diagonal) {{
        int j = diagonal - i;
        int newest = diagonal % 3, old = (diagonal + 2) % 3, older = (diagonal + 1) % 3;
        float here = HUGE_COST;
        if (i < n && j >= 0 && j < n && abs(i - j) <= band) {{
            float difference = value - series[j];
            float least = fminf(cost[older][i], fminf(cost[old][i], cost[old][i + 1]));
            if (diagonal == 0) least = 0.0f;
            here = difference * difference + least;
        }}
        cost[newest][i + 1] = here;
        __syncthreads();
    }}
    if (i == n - 1) distances[pair] = cost[(2 * n - 2) % 3][n];
}}
"""


def warping_work(size: str) -> Work:
    pairs, n, band = sized(size, (16384, LONGEST, 24), (5, 77, 9), cpu=(1024, LONGEST, 24))
    return Work(
        grid=(pairs,),
        block=(LONGEST,),
        args=(random(363, pairs, n), random(364, pairs, n), np.int32(band), np.empty(pairs, np.float32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=8 * pairs * n,
        flops=5 * pairs * n * (2 * band + 1),
    )


def warping_reference(xp, args):
    a, b, band, _ = args
    pairs, n = a.shape
    cost = xp.full((pairs, n + 1, n + 1), xp.inf)
    cost[:, 0, 0] = 0
    squares = (a.astype(xp.float64)[:, :, None] - b[:, None, :]) ** 2
    for diagonal in range(2, 2 * n + 1):
        i = xp.arange(max(1, diagonal - n), min(n, diagonal - 1) + 1)
        i = i[abs(diagonal - 2 * i) <= int(band)]
        j = diagonal - i
        least = xp.minimum(cost[:, i - 1, j - 1], xp.minimum(cost[:, i - 1, j], cost[:, i, j - 1]))
        cost[:, i, j] = squares[:, i - 1, j - 1] + least
    return (cost[:, n, n],)


CASES = (
    Case(
        "Smith-Waterman, affine gaps",
        make_local_alignment,
        "void(uint8[:, ::1], int32[::1], uint8[:, ::1], int8[:, ::1], int32, int32, int32[::1])",
        LOCAL_ALIGNMENT_CPP,
        local_alignment_work,
        local_alignment_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "dynamic time warping in a band",
        make_warping,
        "void(float32[:, ::1], float32[:, ::1], int32, float32[::1])",
        WARPING_CPP,
        warping_work,
        warping_reference,
    ),
)
