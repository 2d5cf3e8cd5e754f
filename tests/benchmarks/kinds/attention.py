"""Attention with an online softmax, one warp a row: lanes over the features, and lanes over the keys."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)
LOWEST = np.float32(-1e30)
FULL = 0xFFFFFFFF


def make_by_features(cuda):
    @cuda.jit
    def attend(queries, keys, values, scale, out):
        warp = cuda.grid(1) // 32
        lane = cuda.laneid
        heads, n, _ = queries.shape
        if warp >= heads * n:
            return
        head = warp // n
        row = warp % n
        q0 = queries[head, row, lane] * scale
        q1 = queries[head, row, lane + 32] * scale
        highest = LOWEST
        norm = ZERO
        sum0 = ZERO
        sum1 = ZERO
        for key in range(n):
            score = q0 * keys[head, key, lane] + q1 * keys[head, key, lane + 32]
            d = 16
            while d > 0:
                score += cuda.shfl_xor_sync(FULL, score, d)
                d //= 2
            new_highest = max(highest, score)
            correction = math.exp(highest - new_highest)
            p = math.exp(score - new_highest)
            norm = norm * correction + p
            sum0 = sum0 * correction + p * values[head, key, lane]
            sum1 = sum1 * correction + p * values[head, key, lane + 32]
            highest = new_highest
        out[head, row, lane] = sum0 / norm
        out[head, row, lane + 32] = sum1 / norm

    return attend


BY_FEATURES_CPP = """
extern "C" __global__ void peer(const float* queries, const float* keys, const float* values, float scale, float* out,
                                int heads, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= heads * n) return;
    int head = warp / n, row = warp % n;
    float q0 = queries[(head * n + row) * 64 + lane] * scale;
    float q1 = queries[(head * n + row) * 64 + lane + 32] * scale;
    float highest = -1e30f, norm = 0.0f, sum0 = 0.0f, sum1 = 0.0f;
    for (int key = 0; key < n; ++key) {
        float score = q0 * keys[(head * n + key) * 64 + lane] + q1 * keys[(head * n + key) * 64 + lane + 32];
        for (int d = 16; d > 0; d /= 2) score += __shfl_xor_sync(0xffffffff, score, d);
        float new_highest = fmaxf(highest, score);
        float correction = expf(highest - new_highest), p = expf(score - new_highest);
        norm = norm * correction + p;
        sum0 = sum0 * correction + p * values[(head * n + key) * 64 + lane];
        sum1 = sum1 * correction + p * values[(head * n + key) * 64 + lane + 32];
        highest = new_highest;
    }
    out[(head * n + row) * 64 + lane] = sum0 / norm;
    out[(head * n + row) * 64 + lane + 32] = sum1 / norm;
}
"""


def by_features_work(size: str) -> Work:
    heads, n = sized(size, (8, 1024), (2, 45), cpu=(8, 256))
    return Work(
        grid=(blocks(heads * n, 4),),
        block=(128,),
        args=(
            random(120, heads, n, 64), random(121, heads, n, 64), random(122, heads, n, 64),
            np.float32(0.125), np.empty((heads, n, 64), np.float32),
        ),
        outputs=(4,),
        extents=(heads, n),
        n_bytes=16 * heads * n * 64,
        flops=4 * heads * n * n * 64,
    )  # fmt: skip


def by_features_reference(xp, args):
    queries, keys, values, scale, _ = args
    queries, keys, values = queries.astype(xp.float64), keys.astype(xp.float64), values.astype(xp.float64)
    scores = queries @ keys.transpose(0, 2, 1) * float(scale)
    weights = xp.exp(scores - scores.max(axis=2, keepdims=True))
    return (weights @ values / weights.sum(axis=2, keepdims=True),)


def make_by_keys(cuda):
    @cuda.jit(device=True)
    def warp_max(value):
        d = 16
        while d > 0:
            value = max(value, cuda.shfl_down_sync(FULL, value, d))
            d //= 2
        return cuda.shfl_sync(FULL, value, 0)

    @cuda.jit(device=True)
    def warp_sum(value):
        d = 16
        while d > 0:
            value += cuda.shfl_down_sync(FULL, value, d)
            d //= 2
        return cuda.shfl_sync(FULL, value, 0)

    @cuda.jit
    def attend_causal(q, k, v, out):
        lane = cuda.threadIdx.x
        row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
        query = cuda.shared.array((8, 32), np.float32)
        if row < q.shape[0]:
            query[cuda.threadIdx.y, lane] = q[row, lane]
            cuda.syncwarp()
            m = LOWEST
            norm = ZERO
            total = ZERO
            start = 0
            while start <= row:
                key = start + lane
                score = LOWEST
                if key <= row:
                    score = ZERO
                    for i in range(32):
                        score += query[cuda.threadIdx.y, i] * k[key, i]
                    score *= np.float32(0.17677669)
                largest = max(m, warp_max(score))
                p = math.exp(score - largest)
                scale = math.exp(m - largest)
                norm = norm * scale + warp_sum(p)
                total *= scale
                for j in range(min(32, row - start + 1)):
                    total += cuda.shfl_sync(FULL, p, j) * v[start + j, lane]
                m = largest
                start += 32
            out[row, lane] = total / norm

    return attend_causal


BY_KEYS_CPP = """
__device__ float warp_max(float value) {
    for (int d = 16; d > 0; d /= 2) value = fmaxf(value, __shfl_down_sync(0xffffffff, value, d));
    return __shfl_sync(0xffffffff, value, 0);
}
__device__ float warp_sum(float value) {
    for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffff, value, d);
    return __shfl_sync(0xffffffff, value, 0);
}
extern "C" __global__ void peer(const float* q, const float* k, const float* v, float* out, int n) {
    __shared__ float query[8][32];
    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row < n) {
        query[threadIdx.y][lane] = q[row * 32 + lane];
        __syncwarp();
        float m = -1e30f, norm = 0.0f, total = 0.0f;
        for (int start = 0; start <= row; start += 32) {
            int key = start + lane;
            float score = -1e30f;
            if (key <= row) {
                score = 0.0f;
                for (int i = 0; i < 32; ++i) score += query[threadIdx.y][i] * k[key * 32 + i];
                score *= 0.17677669f;
            }
            float largest = fmaxf(m, warp_max(score));
            float p = expf(score - largest), scale = expf(m - largest);
            norm = norm * scale + warp_sum(p);
            total *= scale;
            for (int j = 0; j < min(32, row - start + 1); ++j)
                total += __shfl_sync(0xffffffff, p, j) * v[(start + j) * 32 + lane];
            m = largest;
        }
        out[row * 32 + lane] = total / norm;
    }
}
"""


def by_keys_work(size: str) -> Work:
    n = sized(size, 8192, 75, cpu=1024)
    return Work(
        grid=(blocks(n, 8),),
        block=(32, 8),
        args=(random(123, n, 32), random(124, n, 32), random(125, n, 32), np.empty((n, 32), np.float32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=16 * n * 32,
        flops=2 * n * n * 32,
    )


def by_keys_reference(xp, args):
    q, k, v, _ = (arg.astype(xp.float64) for arg in args)
    scores = xp.where(xp.tril(xp.ones((len(q), len(q)), bool)), q @ k.T * 0.17677669, -1e30)
    weights = xp.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights @ v / weights.sum(axis=1, keepdims=True),)


CASES = (
    Case(
        "attention, a warp a query, lanes over features",
        make_by_features,
        "void(float32[:, :, ::1], float32[:, :, ::1], float32[:, :, ::1], float32, float32[:, :, ::1])",
        BY_FEATURES_CPP,
        by_features_work,
        by_features_reference,
    ),
    Case(
        "causal attention, a warp a query, lanes over keys",
        make_by_keys,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1])",
        BY_KEYS_CPP,
        by_keys_work,
        by_keys_reference,
    ),
)
