"""Lists: common elements of sorted lists, compaction into a queue, and nearest neighbors in sorted local arrays."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
FAR = np.float32(1e30)
K = 8
CHUNK = 128
THREADS = 256
WARPS = THREADS // 32
FULL = 0xFFFFFFFF


def make_common(cuda):
    @cuda.jit(device=True)
    def contains(values, start, stop, wanted):
        low = start
        high = stop - 1
        while low <= high:
            middle = (low + high) // 2
            value = values[middle]
            if value == wanted:
                return True
            if value < wanted:
                low = middle + 1
            else:
                high = middle - 1
        return False

    @cuda.jit
    def common_neighbors(starts, neighbors, sources, targets, counts):
        edge = cuda.grid(1)
        if edge >= counts.size:
            return
        a = starts[sources[edge]]
        a_end = starts[sources[edge] + 1]
        b = starts[targets[edge]]
        b_end = starts[targets[edge] + 1]
        if a_end - a > b_end - b:
            a, b = b, a
            a_end, b_end = b_end, a_end
        count = 0
        if 8 * (a_end - a) < b_end - b:
            for k in range(a, a_end):
                if contains(neighbors, b, b_end, neighbors[k]):
                    count += 1
        else:
            while a < a_end and b < b_end:
                u = neighbors[a]
                v = neighbors[b]
                if u == v:
                    count += 1
                if u <= v:
                    a += 1
                if v <= u:
                    b += 1
        counts[edge] = count

    return common_neighbors


COMMON_CPP = """
__device__ bool contains(const int* values, int start, int stop, int wanted) {
    int low = start, high = stop - 1;
    while (low <= high) {
        int middle = (low + high) / 2, value = values[middle];
        if (value == wanted) return true;
        if (value < wanted)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return false;
}
extern "C" __global__ void peer(const int* starts, const int* neighbors, const int* sources, const int* targets,
                                int* counts, int n) {
    int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= n) return;
    int a = starts[sources[edge]], a_end = starts[sources[edge] + 1];
    int b = starts[targets[edge]], b_end = starts[targets[edge] + 1];
    if (a_end - a > b_end - b) {
        int t = a;
        a = b;
        b = t;
        t = a_end;
        a_end = b_end;
        b_end = t;
    }
    int count = 0;
    if (8 * (a_end - a) < b_end - b) {
        for (int k = a; k < a_end; ++k)
            if (contains(neighbors, b, b_end, neighbors[k])) ++count;
    } else {
        while (a < a_end && b < b_end) {
            int u = neighbors[a], v = neighbors[b];
            if (u == v) ++count;
            if (u <= v) ++a;
            if (v <= u) ++b;
        }
    }
    counts[edge] = count;
}
"""


def common_work(size: str) -> Work:
    nodes, longest, edges = sized(size, (1 << 15, 400, 1 << 19), (90, 60, 301), cpu=(1 << 12, 300, 1 << 14))
    numbers = np.random.default_rng(180)
    # Few nodes have many neighbors.
    degrees = (longest * numbers.random(nodes) ** 4).astype(np.int64)
    owners = np.repeat(np.arange(nodes), degrees)
    values = (nodes * numbers.random(owners.size) ** 2).astype(np.int64)
    pairs = np.unique(owners * nodes + values)
    starts = np.searchsorted(pairs, np.arange(nodes + 1) * nodes).astype(np.int32)
    chosen = numbers.integers(0, pairs.size, edges)
    sources, targets = (pairs[chosen] // nodes).astype(np.int32), (pairs[chosen] % nodes).astype(np.int32)
    neighbors = (pairs % nodes).astype(np.int32)
    return Work(
        grid=(blocks(edges, 128),),
        block=(128,),
        args=(starts, neighbors, sources, targets, np.empty(edges, np.int32)),
        outputs=(4,),
        extents=(edges,),
        n_bytes=4 * (starts.size + neighbors.size + 3 * edges),
    )


def common_reference(xp, args):
    starts, neighbors, sources, targets, counts = args
    nodes = len(starts) - 1
    owners = xp.searchsorted(starts[1:], xp.arange(len(neighbors), dtype=starts.dtype), side="right")
    pairs = owners.astype(xp.int64) * nodes + neighbors  # sorted
    total = xp.zeros(len(counts), xp.int64)
    lengths = starts[sources + 1] - starts[sources]
    for k in range(int(lengths.max())):
        active = xp.nonzero(k < lengths)[0]
        wanted = targets[active].astype(xp.int64) * nodes + neighbors[starts[sources[active]] + k]
        at = xp.minimum(xp.searchsorted(pairs, wanted), len(pairs) - 1)
        total[active] += pairs[at] == wanted
    return (total,)


def make_compaction(cuda):
    @cuda.jit
    def enqueue(energies, threshold, queue, head):
        counts = cuda.shared.array(WARPS, np.int32)
        base = cuda.shared.array(1, np.int32)
        i = cuda.grid(1)
        tid = cuda.threadIdx.x
        lane = tid & 31
        warp = tid >> 5
        alive = False
        if i < energies.size:
            alive = energies[i] > threshold
        ballot = cuda.ballot_sync(FULL, alive)
        rank = cuda.popc(ballot & ((1 << lane) - 1))
        if lane == 0:
            counts[warp] = cuda.popc(ballot)
        cuda.syncthreads()
        if tid == 0:
            total = 0
            for w in range(WARPS):
                count = counts[w]
                counts[w] = total
                total += count
            base[0] = cuda.atomic.add(head, 0, total)
        cuda.syncthreads()
        if alive:
            # The queue is a ring; its length is a power of two.
            slot = (base[0] + counts[warp] + rank) & (queue.size - 1)
            queue[slot] = energies[i]

    return enqueue


COMPACTION_CPP = f"""
#define WARPS {WARPS}
extern "C" __global__ void peer(const float* energies, float threshold, float* queue, int* head, int n, int length) {{
    __shared__ int counts[WARPS], base;
    int i = blockIdx.x * blockDim.x + threadIdx.x, tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    bool alive = false;
    if (i < n) alive = energies[i] > threshold;
    unsigned ballot = __ballot_sync(0xffffffff, alive);
    int rank = __popc(ballot & ((1u << lane) - 1));
    if (lane == 0) counts[warp] = __popc(ballot);
    __syncthreads();
    if (tid == 0) {{
        int total = 0;
        for (int w = 0; w < WARPS; ++w) {{
            int count = counts[w];
            counts[w] = total;
            total += count;
        }}
        base = atomicAdd(head, total);
    }}
    __syncthreads();
    if (alive) {{
        int slot = (base + counts[warp] + rank) & (length - 1);
        queue[slot] = energies[i];
    }}
}}
"""


def compaction_work(size: str) -> Work:
    n, length = sized(size, (1 << 25, 1 << 24), (1000, 512), cpu=(1 << 24, 1 << 23))
    return Work(
        grid=(blocks(n, THREADS),),
        block=(THREADS,),
        args=(random(181, n), np.float32(0.7), np.empty(length, np.float32), np.empty(1, np.int32)),
        outputs=(2, 3),
        extents=(n, length),
        n_bytes=4 * n + 12 * n // 10,
    )


def compaction_reference(xp, args):
    energies, threshold, queue, _ = args
    alive = energies[energies > threshold]
    expected = xp.zeros(queue.shape)
    expected[: len(alive)] = alive
    return expected, xp.full(1, len(alive))


class AnyOrder(Case):
    """A case whose outputs are compared after sorting, since their order depends on the order of the blocks."""

    def error(self, xp, outputs, expected):
        return super().error(xp, tuple(map(xp.sort, outputs)), tuple(map(xp.sort, expected)))


def make_nearest(cuda):
    @cuda.jit
    def nearest(queries, points, distances, indices):
        best = cuda.local.array(K, np.float32)
        who = cuda.local.array(K, np.int32)
        tile = cuda.shared.array((CHUNK, 3), np.float32)
        q = cuda.grid(1)
        n_queries = queries.shape[0]
        n_points = points.shape[0]
        for k in range(K):
            best[k] = FAR
            who[k] = -1
        x = ZERO
        y = ZERO
        z = ZERO
        if q < n_queries:
            x = queries[q, 0]
            y = queries[q, 1]
            z = queries[q, 2]
        for first in range(0, n_points, CHUNK):
            p = first + cuda.threadIdx.x
            if p < n_points:
                tile[cuda.threadIdx.x, 0] = points[p, 0]
                tile[cuda.threadIdx.x, 1] = points[p, 1]
                tile[cuda.threadIdx.x, 2] = points[p, 2]
            cuda.syncthreads()
            for t in range(min(CHUNK, n_points - first)):
                dx = x - tile[t, 0]
                dy = y - tile[t, 1]
                dz = z - tile[t, 2]
                d = dx * dx + dy * dy + dz * dz
                if d < best[K - 1]:
                    j = K - 1
                    while j > 0 and best[j - 1] > d:
                        best[j] = best[j - 1]
                        who[j] = who[j - 1]
                        j -= 1
                    best[j] = d
                    who[j] = first + t
            cuda.syncthreads()
        if q < n_queries:
            for k in range(K):
                distances[q, k] = best[k]
                indices[q, k] = who[k]

    return nearest


NEAREST_CPP = f"""
#define K {K}
#define CHUNK {CHUNK}
extern "C" __global__ void peer(const float* queries, const float* points, float* distances, int* indices,
                                int n_queries, int n_points) {{
    float best[K];
    int who[K];
    __shared__ float tile[CHUNK][3];
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < K; ++k) {{
        best[k] = 1e30f;
        who[k] = -1;
    }}
    float x = 0.0f, y = 0.0f, z = 0.0f;
    if (q < n_queries) {{
        x = queries[q * 3];
        y = queries[q * 3 + 1];
        z = queries[q * 3 + 2];
    }}
    for (int first = 0; first < n_points; first += CHUNK) {{
        int p = first + threadIdx.x;
        if (p < n_points) {{
            tile[threadIdx.x][0] = points[p * 3];
            tile[threadIdx.x][1] = points[p * 3 + 1];
            tile[threadIdx.x][2] = points[p * 3 + 2];
        }}
        __syncthreads();
        for (int t = 0; t < min(CHUNK, n_points - first); ++t) {{
            float dx = x - tile[t][0], dy = y - tile[t][1], dz = z - tile[t][2];
            float d = dx * dx + dy * dy + dz * dz;
            if (d < best[K - 1]) {{
                int j = K - 1;
                while (j > 0 && best[j - 1] > d) {{
                    best[j] = best[j - 1];
                    who[j] = who[j - 1];
                    --j;
                }}
                best[j] = d;
                who[j] = first + t;
            }}
        }}
        __syncthreads();
    }}
    if (q < n_queries)
        for (int k = 0; k < K; ++k) {{
            distances[q * K + k] = best[k];
            indices[q * K + k] = who[k];
        }}
}}
"""


def nearest_work(size: str) -> Work:
    n_queries, n_points = sized(size, (1 << 16, 2048), (200, 301), cpu=(1 << 13, 512))
    # Small integers: the distances are exact, and of equal ones the first index comes first.
    numbers = np.random.default_rng(182)
    queries, points = (numbers.integers(0, 1000, (n, 3)).astype(np.float32) for n in (n_queries, n_points))
    return Work(
        grid=(blocks(n_queries, CHUNK),),
        block=(CHUNK,),
        args=(queries, points, np.empty((n_queries, K), np.float32), np.empty((n_queries, K), np.int32)),
        outputs=(2, 3),
        extents=(n_queries, n_points),
        n_bytes=12 * (n_queries + n_points) + 8 * K * n_queries,
        flops=8 * n_queries * n_points,
    )


def nearest_reference(xp, args):
    queries, points = args[0].astype(xp.int64), args[1].astype(xp.int64)
    n_points, found = len(points), []
    for start in range(0, len(queries), 4096):
        some = queries[start : start + 4096, None]
        keys = ((some - points) ** 2).sum(axis=2) * n_points + xp.arange(n_points)
        found.append(xp.sort(keys, axis=1)[:, :K])
    keys = xp.concatenate(found)
    return keys // n_points, keys % n_points


CASES = (
    Case(
        "common neighbors of edges",
        make_common,
        "void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])",
        COMMON_CPP,
        common_work,
        common_reference,
        tolerance=0.0,
    ),
    AnyOrder(
        "compaction into a queue",
        make_compaction,
        "void(float32[::1], float32, float32[::1], int32[::1])",
        COMPACTION_CPP,
        compaction_work,
        compaction_reference,
        tolerance=0.0,
        accumulates=True,
    ),
    Case(
        "nearest neighbors, sorted local arrays",
        make_nearest,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], int32[:, ::1])",
        NEAREST_CPP,
        nearest_work,
        nearest_reference,
        tolerance=0.0,
    ),
)
