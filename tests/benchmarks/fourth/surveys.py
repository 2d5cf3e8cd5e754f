"""Statistics of many points: the angular correlation of galaxies by a histogram, and the assignment step of k-means."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
BINS = 20
# The cosines of the angles between bins: five bins for each factor of ten, from one arc minute.
BOUNDS = np.cos(np.deg2rad(10.0 ** (np.arange(BINS + 1) / 5) / 60)).astype(np.float32)
SIDE = 256
WARPS = SIDE // 32


def make_correlation(cuda):
    @cuda.jit(device=True)
    def bin_of(bounds, cosine):
        low = 0
        high = BINS
        while high > low + 1:
            middle = (low + high) // 2
            if cosine >= bounds[middle]:
                high = middle
            else:
                low = middle
        if cosine >= bounds[low]:
            return low
        if cosine < bounds[high]:
            return high + 1
        return high

    @cuda.jit
    def correlation(points, counts):
        if cuda.blockIdx.x < cuda.blockIdx.y:
            return
        bounds = cuda.const.array_like(BOUNDS)
        others = cuda.shared.array((3, SIDE), np.float32)
        histograms = cuda.shared.array((BINS + 2, WARPS), np.int32)
        tid = cuda.threadIdx.x
        n = points.shape[1]
        for k in range(tid, (BINS + 2) * WARPS, SIDE):
            histograms[k // WARPS, k % WARPS] = 0
        i = cuda.blockIdx.y * SIDE + tid
        first = cuda.blockIdx.x * SIDE
        if first + tid < n:
            for c in range(3):
                others[c, tid] = points[c, first + tid]
        cuda.syncthreads()
        if i < n:
            x = points[0, i]
            y = points[1, i]
            z = points[2, i]
            warp = tid // 32
            for k in range(min(SIDE, n - first)):
                if first + k > i:
                    cosine = x * others[0, k] + y * others[1, k] + z * others[2, k]
                    cuda.atomic.add(histograms, (bin_of(bounds, cosine), warp), 1)
        cuda.syncthreads()
        if tid < BINS + 2:
            total = 0
            for w in range(WARPS):
                total += histograms[tid, w]
            cuda.atomic.add(counts, tid, total)

    return correlation


CORRELATION_CPP = f"""
#define BINS {BINS}
#define SIDE {SIDE}
#define WARPS (SIDE / 32)
__constant__ float bounds[BINS + 1] = {{{", ".join(f"{bound:.9e}f" for bound in BOUNDS.tolist())}}};

__device__ int bin_of(float cosine) {{
    int low = 0, high = BINS;
    while (high > low + 1) {{
        int middle = (low + high) / 2;
        if (cosine >= bounds[middle])
            high = middle;
        else
            low = middle;
    }}
    if (cosine >= bounds[low]) return low;
    if (cosine < bounds[high]) return high + 1;
    return high;
}}

extern "C" __global__ void peer(const float* points, int* counts, int n) {{
    if (blockIdx.x < blockIdx.y) return;
    __shared__ float others[3][SIDE];
    __shared__ int histograms[BINS + 2][WARPS];
    int tid = threadIdx.x;
    for (int k = tid; k < (BINS + 2) * WARPS; k += SIDE) histograms[k / WARPS][k % WARPS] = 0;
    int i = blockIdx.y * SIDE + tid, first = blockIdx.x * SIDE;
    if (first + tid < n)
        for (int c = 0; c < 3; ++c) others[c][tid] = points[c * n + first + tid];
    __syncthreads();
    if (i < n) {{
        float x = points[i], y = points[n + i], z = points[2 * n + i];
        int warp = tid / 32, count = min(SIDE, n - first);
        for (int k = 0; k < count; ++k) {{
            if (first + k > i) {{
                float cosine = x * others[0][k] + y * others[1][k] + z * others[2][k];
                atomicAdd(&histograms[bin_of(cosine)][warp], 1);
            }}
        }}
    }}
    __syncthreads();
    if (tid < BINS + 2) {{
        int total = 0;
        for (int w = 0; w < WARPS; ++w) total += histograms[tid][w];
        atomicAdd(&counts[tid], total);
    }}
}}
"""


def correlation_work(size: str) -> Work:
    n = sized(size, 1 << 14, 700, cpu=1 << 11)
    numbers = np.random.default_rng(320)
    # Galaxies are in clusters, so that all bins have some pairs.
    centers, spread = numbers.normal(size=(3, n // 16 + 1)), numbers.choice(10.0 ** np.arange(-4, 1), n)
    points = centers[:, numbers.integers(0, centers.shape[1], n)] + spread * numbers.normal(size=(3, n))
    points = (points / np.sqrt((points * points).sum(axis=0))).astype(np.float32)
    return Work(
        grid=(blocks(n, SIDE), blocks(n, SIDE)),
        block=(SIDE,),
        args=(points, np.zeros(BINS + 2, np.int32)),
        outputs=(1,),
        extents=(n,),
        n_bytes=12 * n,
        flops=15 * n * (n - 1) / 2,
    )


def correlation_reference(xp, args):
    points, counts = args[0].astype(xp.float64), xp.zeros(BINS + 2, xp.int64)
    ascending = xp.asarray(BOUNDS[::-1].astype(np.float64))
    n = points.shape[1]
    for start in range(0, n, 1024):
        cosines = points[:, start : start + 1024].T @ points
        pairs = xp.arange(n) > xp.arange(start, start + len(cosines))[:, None]
        above = xp.searchsorted(ascending, cosines[pairs], side="right")
        counts += xp.bincount(BINS + 1 - above, minlength=BINS + 2)
    return (counts,)


DIMENSIONS, CENTERS = 24, 64


def make_nearest_center(cuda):
    @cuda.jit
    def nearest_center(features, centers, membership, distances):
        cached = cuda.shared.array((CENTERS, DIMENSIONS), np.float32)
        point = cuda.local.array(DIMENSIONS, np.float32)
        tid = cuda.threadIdx.x
        n_centers = centers.shape[0]
        for k in range(tid, n_centers * DIMENSIONS, cuda.blockDim.x):
            cached[k // DIMENSIONS, k % DIMENSIONS] = centers[k // DIMENSIONS, k % DIMENSIONS]
        cuda.syncthreads()
        i = cuda.grid(1)
        if i < features.shape[1]:
            for d in range(DIMENSIONS):
                point[d] = features[d, i]
            nearest = 0
            least = np.float32(np.inf)
            for c in range(n_centers):
                distance = ZERO
                for d in range(DIMENSIONS):
                    difference = point[d] - cached[c, d]
                    distance += difference * difference
                if distance < least:
                    least = distance
                    nearest = c
            membership[i] = nearest
            distances[i] = least

    return nearest_center


NEAREST_CENTER_CPP = f"""
#define CENTERS {CENTERS}
#define DIMENSIONS {DIMENSIONS}
extern "C" __global__ void peer(const float* features, const float* centers, int* membership, float* distances,
                                int n, int n_centers) {{
    __shared__ float cached[CENTERS][DIMENSIONS];
    float point[DIMENSIONS];
    int tid = threadIdx.x;
    for (int k = tid; k < n_centers * DIMENSIONS; k += blockDim.x)
        cached[k / DIMENSIONS][k % DIMENSIONS] = centers[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{
        for (int d = 0; d < DIMENSIONS; ++d) point[d] = features[d * n + i];
        int nearest = 0;
        float least = __int_as_float(0x7f800000);
        for (int c = 0; c < n_centers; ++c) {{
            float distance = 0.0f;
            for (int d = 0; d < DIMENSIONS; ++d) {{
                float difference = point[d] - cached[c][d];
                distance += difference * difference;
            }}
            if (distance < least) {{
                least = distance;
                nearest = c;
            }}
        }}
        membership[i] = nearest;
        distances[i] = least;
    }}
}}
"""


def nearest_center_work(size: str) -> Work:
    n, n_centers = sized(size, (1 << 20, CENTERS), (700, 13), cpu=(1 << 17, CENTERS))
    centers, numbers = random(321, n_centers, DIMENSIONS), np.random.default_rng(322)
    features = centers.T[:, numbers.integers(0, n_centers, n)] + random(323, DIMENSIONS, n) / np.float32(4)
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(features.astype(np.float32), centers, np.empty(n, np.int32), np.empty(n, np.float32)),
        outputs=(2, 3),
        extents=(n, n_centers),
        n_bytes=4 * n * (DIMENSIONS + 2),
        flops=3 * n * n_centers * DIMENSIONS,
    )


def nearest_center_reference(xp, args):
    features, centers = (each.astype(xp.float64) for each in args[:2])
    least = xp.full(features.shape[1], xp.inf)
    nearest = xp.zeros(features.shape[1], xp.int64)
    for c in range(len(centers)):
        distance = ((features - centers[c][:, None]) ** 2).sum(axis=0)
        nearest = xp.where(distance < least, c, nearest)
        least = xp.minimum(distance, least)
    return nearest, least


CASES = (
    Case(
        "angular correlation of galaxies",
        make_correlation,
        "void(float32[:, ::1], int32[::1])",
        CORRELATION_CPP,
        correlation_work,
        correlation_reference,
        # The cosines of the smallest angles round to few float32 values, which are sometimes in another bin.
        tolerance=1e-2,
        accumulates=True,
    ),
    Case(
        "k-means, nearest centers",
        make_nearest_center,
        "void(float32[:, ::1], float32[:, ::1], int32[::1], float32[::1])",
        NEAREST_CENTER_CPP,
        nearest_center_work,
        nearest_center_reference,
        tolerance=1e-5,
    ),
)
