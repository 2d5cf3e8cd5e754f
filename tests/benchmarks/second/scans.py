"""Order within a block or an array: scans after Hillis and Steele and after Blelloch, compaction, a bitonic step."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)


def make_hillis_steele(cuda):
    @cuda.jit
    def hillis_steele(x, out):
        sums = cuda.shared.array((2, 512), np.int32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        source = 0
        sums[0, tid] = x[i] if i < x.size else 0
        cuda.syncthreads()
        offset = 1
        while offset < 512:
            target = 1 - source
            if tid >= offset:
                sums[target, tid] = sums[source, tid] + sums[source, tid - offset]
            else:
                sums[target, tid] = sums[source, tid]
            source = target
            cuda.syncthreads()
            offset *= 2
        if i < x.size:
            out[i] = sums[source, tid]

    return hillis_steele


HILLIS_STEELE_CPP = """
extern "C" __global__ void peer(const int* x, int* out, int n) {
    __shared__ int sums[2][512];
    int tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid, source = 0;
    sums[0][tid] = i < n ? x[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 512; offset *= 2) {
        int target = 1 - source;
        if (tid >= offset)
            sums[target][tid] = sums[source][tid] + sums[source][tid - offset];
        else
            sums[target][tid] = sums[source][tid];
        source = target;
        __syncthreads();
    }
    if (i < n) out[i] = sums[source][tid];
}
"""


def hillis_steele_work(size: str) -> Work:
    n = sized(size, 1 << 24, 1300, cpu=1 << 23)
    return Work(
        grid=(blocks(n, 512),),
        block=(512,),
        args=(np.random.default_rng(50).integers(-50, 100, n, dtype=np.int32), np.empty(n, np.int32)),
        outputs=(1,),
        extents=(n,),
        n_bytes=8 * n,
        flops=9 * n,
    )


def in_blocks(xp, x, length):
    """The array as rows of a block's length, padded with zeros."""
    padded = xp.zeros(blocks(x.size, length) * length, x.dtype)
    padded[: x.size] = x
    return padded.reshape(-1, length)


def hillis_steele_reference(xp, args):
    return (in_blocks(xp, args[0], 512).cumsum(axis=1).ravel()[: args[0].size],)


def make_blelloch(cuda):
    @cuda.jit
    def blelloch(x, out, totals):
        tree = cuda.shared.array(512, np.float32)
        tid = cuda.threadIdx.x
        base = cuda.blockIdx.x * 512
        tree[2 * tid] = x[base + 2 * tid]
        tree[2 * tid + 1] = x[base + 2 * tid + 1]
        offset = 1
        d = 256
        while d > 0:
            cuda.syncthreads()
            if tid < d:
                left = offset * (2 * tid + 1) - 1
                right = offset * (2 * tid + 2) - 1
                tree[right] += tree[left]
            offset *= 2
            d //= 2
        if tid == 0:
            totals[cuda.blockIdx.x] = tree[511]
            tree[511] = ZERO
        d = 1
        while d < 512:
            offset //= 2
            cuda.syncthreads()
            if tid < d:
                left = offset * (2 * tid + 1) - 1
                right = offset * (2 * tid + 2) - 1
                value = tree[left]
                tree[left] = tree[right]
                tree[right] += value
            d *= 2
        cuda.syncthreads()
        out[base + 2 * tid] = tree[2 * tid]
        out[base + 2 * tid + 1] = tree[2 * tid + 1]

    return blelloch


BLELLOCH_CPP = """
extern "C" __global__ void peer(const float* x, float* out, float* totals) {
    __shared__ float tree[512];
    int tid = threadIdx.x, base = blockIdx.x * 512;
    tree[2 * tid] = x[base + 2 * tid];
    tree[2 * tid + 1] = x[base + 2 * tid + 1];
    int offset = 1;
    for (int d = 256; d > 0; d /= 2) {
        __syncthreads();
        if (tid < d) {
            int left = offset * (2 * tid + 1) - 1, right = offset * (2 * tid + 2) - 1;
            tree[right] += tree[left];
        }
        offset *= 2;
    }
    if (tid == 0) {
        totals[blockIdx.x] = tree[511];
        tree[511] = 0.0f;
    }
    for (int d = 1; d < 512; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (tid < d) {
            int left = offset * (2 * tid + 1) - 1, right = offset * (2 * tid + 2) - 1;
            float value = tree[left];
            tree[left] = tree[right];
            tree[right] += value;
        }
    }
    __syncthreads();
    out[base + 2 * tid] = tree[2 * tid];
    out[base + 2 * tid + 1] = tree[2 * tid + 1];
}
"""


def blelloch_work(size: str) -> Work:
    n = sized(size, 1 << 24, 1536, cpu=1 << 23)
    return Work(
        grid=(n // 512,),
        block=(256,),
        args=(random(51, n), np.empty(n, np.float32), np.empty(n // 512, np.float32)),
        outputs=(1, 2),
        extents=(),
        n_bytes=8 * n,
        flops=2 * n,
    )


def blelloch_reference(xp, args):
    x = args[0].astype(xp.float64).reshape(-1, 512)
    sums = x.cumsum(axis=1)
    return (sums - x).ravel(), sums[:, -1]


def make_compaction(cuda):
    @cuda.jit
    def compact(x, threshold, out, counts):
        warps = cuda.shared.array(8, np.int32)
        tid = cuda.threadIdx.x
        lane = tid % 32
        warp = tid // 32
        i = cuda.grid(1)
        keep = i < x.size and x[i] > threshold
        votes = cuda.ballot_sync(0xFFFFFFFF, keep)
        before = cuda.popc(votes & ((1 << lane) - 1))
        if lane == 0:
            warps[warp] = cuda.popc(votes)
        cuda.syncthreads()
        base = 0
        for w in range(warp):
            base += warps[w]
        if keep:
            out[cuda.blockIdx.x * 256 + base + before] = x[i]
        if tid == 255:
            counts[cuda.blockIdx.x] = base + warps[warp]

    return compact


COMPACTION_CPP = """
extern "C" __global__ void peer(const float* x, float threshold, float* out, int* counts, int n) {
    __shared__ int warps[8];
    int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, i = blockIdx.x * blockDim.x + tid;
    bool keep = i < n && x[i] > threshold;
    unsigned int votes = __ballot_sync(0xffffffff, keep);
    int before = __popc(votes & ((1u << lane) - 1));
    if (lane == 0) warps[warp] = __popc(votes);
    __syncthreads();
    int base = 0;
    for (int w = 0; w < warp; ++w) base += warps[w];
    if (keep) out[blockIdx.x * 256 + base + before] = x[i];
    if (tid == 255) counts[blockIdx.x] = base + warps[warp];
}
"""


def compaction_work(size: str) -> Work:
    n = sized(size, 1 << 24, 1000, cpu=1 << 23)
    n_blocks = blocks(n, 256)
    return Work(
        grid=(n_blocks,),
        block=(256,),
        args=(random(52, n), np.float32(0.6), np.empty(256 * n_blocks, np.float32), np.empty(n_blocks, np.int32)),
        outputs=(2, 3),
        extents=(n,),
        n_bytes=int(5.6 * n),
    )


def compaction_reference(xp, args):
    x = in_blocks(xp, args[0], 256)
    keep = x > args[1]
    rows = xp.broadcast_to(xp.arange(len(x))[:, None], x.shape)
    out = xp.zeros(x.shape, xp.float32)
    out[rows[keep], (keep.cumsum(axis=1) - 1)[keep]] = x[keep]
    return out.ravel(), keep.sum(axis=1)


def make_bitonic(cuda):
    @cuda.jit
    def bitonic(x, j, k, out):
        i = cuda.grid(1)
        partner = i ^ j
        if partner > i and partner < x.size:
            a = x[i]
            b = x[partner]
            if (i & k) == 0:
                swap = a > b
            else:
                swap = a < b
            if swap:
                out[i] = b
                out[partner] = a
            else:
                out[i] = a
                out[partner] = b

    return bitonic


BITONIC_CPP = """
extern "C" __global__ void peer(const float* x, int j, int k, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ j;
    if (partner > i && partner < n) {
        float a = x[i], b = x[partner];
        bool swap = (i & k) == 0 ? a > b : a < b;
        if (swap) {
            out[i] = b;
            out[partner] = a;
        } else {
            out[i] = a;
            out[partner] = b;
        }
    }
}
"""


def bitonic_work(size: str) -> Work:
    n, j, k = sized(size, (1 << 24, 1 << 10, 1 << 14), (1024, 16, 128), cpu=(1 << 23, 1 << 10, 1 << 14))
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(random(53, n), np.int32(j), np.int32(k), np.empty(n, np.float32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=8 * n,
    )


def bitonic_reference(xp, args):
    x, j, k, _ = args
    i = xp.arange(x.size)
    partner = i ^ int(j)
    ascending, lower = (i & int(k)) == 0, partner > i
    least, most = xp.minimum(x, x[partner]), xp.maximum(x, x[partner])
    return (xp.where(ascending == lower, least, most),)


CASES = (
    Case(
        "scan after Hillis and Steele",
        make_hillis_steele,
        "void(int32[::1], int32[::1])",
        HILLIS_STEELE_CPP,
        hillis_steele_work,
        hillis_steele_reference,
        tolerance=0.0,
    ),
    Case(
        "scan after Blelloch",
        make_blelloch,
        "void(float32[::1], float32[::1], float32[::1])",
        BLELLOCH_CPP,
        blelloch_work,
        blelloch_reference,
    ),
    Case(
        "compaction in blocks",
        make_compaction,
        "void(float32[::1], float32, float32[::1], int32[::1])",
        COMPACTION_CPP,
        compaction_work,
        compaction_reference,
        tolerance=0.0,
        accumulates=True,  # elements after a block's last one are never written
    ),
    Case(
        "bitonic sort, one step",
        make_bitonic,
        "void(float32[::1], int32, int32, float32[::1])",
        BITONIC_CPP,
        bitonic_work,
        bitonic_reference,
        tolerance=0.0,
    ),
)
