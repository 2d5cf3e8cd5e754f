"""Rows of different lengths, in CSR order: a softmax of segments, and PageRank by pushes along edges."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)
LOWEST = np.float32(-np.inf)


def make_segment_softmax(cuda):
    @cuda.jit(device=True)
    def warp_max(value):
        for step in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, step))
        return value

    @cuda.jit(device=True)
    def warp_sum(value):
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
        return value

    @cuda.jit
    def segment_softmax(offsets, scores, out, totals):
        lane = cuda.threadIdx.x % 32
        segment = cuda.grid(1) // 32
        if segment < offsets.size - 1:
            begin = offsets[segment]
            end = offsets[segment + 1]
            highest = LOWEST
            for i in range(begin + lane, end, 32):
                highest = max(highest, scores[i])
            highest = warp_max(highest)
            total = ZERO
            for i in range(begin + lane, end, 32):
                total += math.exp(scores[i] - highest)
            total = warp_sum(total)
            for i in range(begin + lane, end, 32):
                out[i] = math.exp(scores[i] - highest) / total
            if lane == 0:
                totals[segment] = total

    return segment_softmax


SEGMENT_SOFTMAX_CPP = """
__device__ float warp_max(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, step));
    return value;
}

__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
    return value;
}

extern "C" __global__ void peer(const int* offsets, const float* scores, float* out, float* totals, int n_segments) {
    int lane = threadIdx.x % 32, segment = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (segment < n_segments) {
        int begin = offsets[segment], end = offsets[segment + 1];
        float highest = __int_as_float(0xff800000);
        for (int i = begin + lane; i < end; i += 32) highest = fmaxf(highest, scores[i]);
        highest = warp_max(highest);
        float total = 0.0f;
        for (int i = begin + lane; i < end; i += 32) total += expf(scores[i] - highest);
        total = warp_sum(total);
        for (int i = begin + lane; i < end; i += 32) out[i] = expf(scores[i] - highest) / total;
        if (lane == 0) totals[segment] = total;
    }
}
"""


def offsets_of(seed: int, n: int, mean: int) -> np.ndarray:
    """Offsets of `n` segments with geometrically distributed lengths, some of which are 0."""
    lengths = np.random.default_rng(seed).geometric(1 / (mean + 1), n) - 1
    lengths[:: n // 2] = 0
    return np.concatenate([[0], lengths.cumsum()]).astype(np.int32)


def segment_softmax_work(size: str) -> Work:
    n, mean = sized(size, (1 << 18, 60), (101, 40), cpu=(1 << 16, 60))
    offsets = offsets_of(420, n, mean)
    n_scores = int(offsets[-1])
    return Work(
        grid=(blocks(n, 8),),
        block=(256,),
        args=(
            offsets, random(421, n_scores) * np.float32(8), np.empty(n_scores, np.float32), np.empty(n, np.float32),
        ),
        outputs=(2, 3),
        extents=(n,),
        n_bytes=8 * n_scores + 8 * n,
        flops=6 * n_scores,
    )  # fmt: skip


def on_host(xp, array) -> np.ndarray:
    return array if xp is np else xp.asnumpy(array)


def segment_softmax_reference(xp, args):
    offsets, scores = (on_host(xp, each) for each in args[:2])
    lengths = np.diff(offsets)
    filled = lengths > 0
    starts = offsets[:-1][filled]  # a segment ends where the next one that is not empty begins
    highest = np.repeat(np.maximum.reduceat(scores, starts), lengths[filled])
    powers = np.exp(scores.astype(np.float64) - highest)
    totals = np.zeros(lengths.size)
    totals[filled] = np.add.reduceat(powers, starts)
    return xp.asarray(powers / np.repeat(totals, lengths)), xp.asarray(totals)


def make_push(cuda):
    @cuda.jit
    def push(offsets, targets, rank, damping, following, dangling):
        node = cuda.grid(1)
        n = rank.size
        if node < n:
            begin = offsets[node]
            end = offsets[node + 1]
            if begin < end:
                share = damping * rank[node] / np.float32(end - begin)
                for k in range(begin, end):
                    cuda.atomic.add(following, targets[k], share)
            else:
                cuda.atomic.add(dangling, 0, rank[node])
            cuda.atomic.add(following, node, (ONE - damping) / np.float32(n))

    return push


PUSH_CPP = """
extern "C" __global__ void peer(const int* offsets, const int* targets, const float* rank, float damping,
                                float* following, float* dangling, int n) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < n) {
        int begin = offsets[node], end = offsets[node + 1];
        if (begin < end) {
            float share = damping * rank[node] / (end - begin);
            for (int k = begin; k < end; ++k) atomicAdd(&following[targets[k]], share);
        } else {
            atomicAdd(&dangling[0], rank[node]);
        }
        atomicAdd(&following[node], (1.0f - damping) / n);
    }
}
"""


def push_work(size: str) -> Work:
    n, mean = sized(size, (1 << 19, 16), (700, 5), cpu=(1 << 19, 16))
    offsets = offsets_of(422, n, mean)
    n_edges = int(offsets[-1])
    # More edges lead to the first nodes than to the last ones.
    targets = (n * np.random.default_rng(423).random(n_edges) ** 2).astype(np.int32)
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(
            offsets, targets, (random(424, n) + ONE) / np.float32(n), np.float32(0.85), np.zeros(n, np.float32),
            np.zeros(1, np.float32),
        ),
        outputs=(4, 5),
        extents=(n,),
        n_bytes=4 * (n_edges + 3 * n),
        flops=n_edges + 4 * n,
    )  # fmt: skip


def push_reference(xp, args):
    offsets, targets, rank, damping, _, _ = args
    rank, damping, degrees = rank.astype(xp.float64), float(damping), xp.diff(offsets)
    sources = xp.asarray(np.repeat(np.arange(rank.size), on_host(xp, degrees)))
    share = damping * rank / xp.maximum(degrees, 1)
    following = xp.bincount(targets, share[sources], minlength=rank.size) + (1 - damping) / rank.size
    return following, rank[degrees == 0].sum()[None]


CASES = (
    Case(
        "softmax of segments, a warp a segment",
        make_segment_softmax,
        "void(int32[::1], float32[::1], float32[::1], float32[::1])",
        SEGMENT_SOFTMAX_CPP,
        segment_softmax_work,
        segment_softmax_reference,
    ),
    Case(
        "PageRank, pushes by a thread a node",
        make_push,
        "void(int32[::1], int32[::1], float32[::1], float32, float32[::1], float32[::1])",
        PUSH_CPP,
        push_work,
        push_reference,
        tolerance=1e-4,  # the sum over dangling nodes has thousands of terms
        accumulates=True,
    ),
)
