"""Non-maximum suppression: a bit for each pair of overlapping boxes, 64 boxes a block, float32 and int32."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

SIDE = 64
ZERO = np.float32(0)


def make_masks(cuda):
    @cuda.jit(device=True)
    def overlap(boxes, i, shared, k):
        left = max(boxes[i, 0], shared[k, 0])
        top = max(boxes[i, 1], shared[k, 1])
        right = min(boxes[i, 2], shared[k, 2])
        bottom = min(boxes[i, 3], shared[k, 3])
        inner = max(right - left, ZERO) * max(bottom - top, ZERO)
        first = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
        second = (shared[k, 2] - shared[k, 0]) * (shared[k, 3] - shared[k, 1])
        return inner / (first + second - inner)

    @cuda.jit
    def suppression_masks(boxes, threshold, masks):
        column_start = cuda.blockIdx.x
        row_start = cuda.blockIdx.y
        if row_start > column_start:
            return
        n = boxes.shape[0]
        n_rows = min(n - row_start * SIDE, SIDE)
        n_columns = min(n - column_start * SIDE, SIDE)
        shared = cuda.shared.array((SIDE, 4), np.float32)
        tid = cuda.threadIdx.x
        if tid < n_columns:
            for side in range(4):
                shared[tid, side] = boxes[column_start * SIDE + tid, side]
        cuda.syncthreads()
        if tid < n_rows:
            current = row_start * SIDE + tid
            start = tid + 1 if row_start == column_start else 0
            bits = np.uint64(0)
            for k in range(start, n_columns):
                if overlap(boxes, current, shared, k) > threshold:
                    bits |= np.uint64(1) << np.uint64(k)
            masks[current, column_start] = bits

    return suppression_masks


MASKS_CPP = """
#define SIDE 64
__device__ float overlap(const float* a, const float* b) {
    float left = fmaxf(a[0], b[0]), top = fmaxf(a[1], b[1]);
    float right = fminf(a[2], b[2]), bottom = fminf(a[3], b[3]);
    float inner = fmaxf(right - left, 0.0f) * fmaxf(bottom - top, 0.0f);
    float first = (a[2] - a[0]) * (a[3] - a[1]), second = (b[2] - b[0]) * (b[3] - b[1]);
    return inner / (first + second - inner);
}
extern "C" __global__ void peer(const float* boxes, float threshold, unsigned long long* masks, int n) {
    int column_start = blockIdx.x, row_start = blockIdx.y;
    if (row_start > column_start) return;
    int n_rows = min(n - row_start * SIDE, SIDE), n_columns = min(n - column_start * SIDE, SIDE);
    __shared__ float shared[SIDE][4];
    int tid = threadIdx.x;
    if (tid < n_columns)
        for (int side = 0; side < 4; ++side) shared[tid][side] = boxes[(column_start * SIDE + tid) * 4 + side];
    __syncthreads();
    if (tid < n_rows) {
        int current = row_start * SIDE + tid, start = row_start == column_start ? tid + 1 : 0;
        unsigned long long bits = 0;
        for (int k = start; k < n_columns; ++k)
            if (overlap(boxes + current * 4, shared[k]) > threshold) bits |= 1ULL << k;
        masks[current * gridDim.x + column_start] = bits;
    }
}
"""


def packed(xp, bits):
    """Rows of bool as rows of uint64, the first element in the lowest bit."""
    n, m = bits.shape
    columns = blocks(m, SIDE)
    padded = xp.zeros((n, columns * SIDE), xp.uint8)
    padded[:, :m] = bits
    octets = padded.reshape(n, columns * 8, 8) * (2 ** xp.arange(8)).astype(xp.uint8)
    return octets.sum(axis=2, dtype=xp.uint8).view(xp.uint64)


def masks_work(size: str) -> Work:
    n = sized(size, 1 << 14, 150, cpu=1 << 13)
    corners = random(130, n, 2) * np.float32(1000)
    boxes = np.concatenate([corners, corners + np.float32(20) + random(131, n, 2) * np.float32(200)], axis=1)
    columns = blocks(n, SIDE)
    return Work(
        grid=(columns, columns),
        block=(SIDE,),
        args=(boxes, np.float32(0.3), np.empty((n, columns), np.uint64)),
        outputs=(2,),
        extents=(n,),
        n_bytes=16 * n + 4 * n * columns,
        flops=10 * n * n,
    )


def masks_reference(xp, args):
    boxes, threshold, _ = args
    n, found = len(boxes), []
    boxes = boxes.astype(xp.float64)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for start in range(0, n, 1024):
        some = boxes[start : start + 1024, None]
        inner = xp.maximum(xp.minimum(some[:, :, 2], boxes[:, 2]) - xp.maximum(some[:, :, 0], boxes[:, 0]), 0)
        inner *= xp.maximum(xp.minimum(some[:, :, 3], boxes[:, 3]) - xp.maximum(some[:, :, 1], boxes[:, 1]), 0)
        above = inner / (area[start : start + 1024, None] + area - inner) > float(threshold)
        above &= xp.arange(n) > xp.arange(start, min(start + 1024, n))[:, None]
        found.append(packed(xp, above))
    return (xp.concatenate(found),)


def make_by_class(cuda):
    @cuda.jit
    def overlaps_of_class(x0, y0, x1, y1, label, masks):
        bx0 = cuda.shared.array(64, np.int32)
        by0 = cuda.shared.array(64, np.int32)
        bx1 = cuda.shared.array(64, np.int32)
        by1 = cuda.shared.array(64, np.int32)
        areas = cuda.shared.array(64, np.int32)
        labels = cuda.shared.array(64, np.uint8)
        n = x0.size
        first = cuda.blockIdx.x * 64
        t = cuda.threadIdx.y * 64 + cuda.threadIdx.x
        if t < 64 and first + t < n:
            bx0[t] = x0[first + t]
            by0[t] = y0[first + t]
            bx1[t] = x1[first + t]
            by1[t] = y1[first + t]
            areas[t] = (x1[first + t] - x0[first + t] + 1) * (y1[first + t] - y0[first + t] + 1)
            labels[t] = label[first + t]
        cuda.syncthreads()
        i = cuda.blockIdx.y * 256 + t
        if i >= n:
            return
        area = (x1[i] - x0[i] + 1) * (y1[i] - y0[i] + 1)
        mask = np.uint64(0)
        for j in range(64):
            if first + j >= n:
                break
            if first + j == i or labels[j] != label[i]:
                continue
            w = min(x1[i], bx1[j]) - max(x0[i], bx0[j]) + 1
            h = min(y1[i], by1[j]) - max(y0[i], by0[j]) + 1
            if w > 0 and h > 0 and 2 * w * h > area + areas[j] - w * h:
                mask |= np.uint64(1 << j)
        masks[cuda.blockIdx.x, i] = mask

    return overlaps_of_class


BY_CLASS_CPP = """
extern "C" __global__ void peer(const int* x0, const int* y0, const int* x1, const int* y1, const unsigned char* label,
                                unsigned long long* masks, int n) {
    __shared__ int bx0[64], by0[64], bx1[64], by1[64], areas[64];
    __shared__ unsigned char labels[64];
    int first = blockIdx.x * 64, t = threadIdx.y * 64 + threadIdx.x;
    if (t < 64 && first + t < n) {
        bx0[t] = x0[first + t];
        by0[t] = y0[first + t];
        bx1[t] = x1[first + t];
        by1[t] = y1[first + t];
        areas[t] = (x1[first + t] - x0[first + t] + 1) * (y1[first + t] - y0[first + t] + 1);
        labels[t] = label[first + t];
    }
    __syncthreads();
    int i = blockIdx.y * 256 + t;
    if (i >= n) return;
    int area = (x1[i] - x0[i] + 1) * (y1[i] - y0[i] + 1);
    unsigned long long mask = 0;
    for (int j = 0; j < 64; ++j) {
        if (first + j >= n) break;
        if (first + j == i || labels[j] != label[i]) continue;
        int w = min(x1[i], bx1[j]) - max(x0[i], bx0[j]) + 1;
        int h = min(y1[i], by1[j]) - max(y0[i], by0[j]) + 1;
        if (w > 0 && h > 0 && 2 * w * h > area + areas[j] - w * h) mask |= 1ULL << j;
    }
    masks[blockIdx.x * n + i] = mask;
}
"""


def by_class_work(size: str) -> Work:
    n = sized(size, 1 << 14, 300, cpu=6000)
    numbers = np.random.default_rng(132)
    x0, y0 = numbers.integers(0, 1500, (2, n), dtype=np.int32)
    width, height = numbers.integers(10, 400, (2, n), dtype=np.int32)
    label = numbers.integers(0, 4, n, dtype=np.uint8)
    columns = blocks(n, SIDE)
    return Work(
        grid=(columns, blocks(n, 256)),
        block=(64, 4),
        args=(x0, y0, x0 + width, y0 + height, label, np.empty((columns, n), np.uint64)),
        outputs=(5,),
        extents=(n,),
        n_bytes=17 * n + 8 * n * columns,
        flops=10 * n * n,
    )


def by_class_reference(xp, args):
    x0, y0, x1, y1 = (arg.astype(xp.int64) for arg in args[:4])
    n, label, found = len(x0), args[4], []
    area = (x1 - x0 + 1) * (y1 - y0 + 1)
    for start in range(0, n, 1024):
        some = slice(start, start + 1024)
        w = xp.minimum(x1[some, None], x1) - xp.maximum(x0[some, None], x0) + 1
        h = xp.minimum(y1[some, None], y1) - xp.maximum(y0[some, None], y0) + 1
        above = (w > 0) & (h > 0) & (2 * w * h > area[some, None] + area - w * h)
        above &= label[some, None] == label
        above &= xp.arange(n) != xp.arange(start, min(start + 1024, n))[:, None]
        found.append(packed(xp, above))
    return (xp.concatenate(found).T,)


CASES = (
    Case(
        "overlap masks of boxes, upper triangle",
        make_masks,
        "void(float32[:, ::1], float32, uint64[:, ::1])",
        MASKS_CPP,
        masks_work,
        masks_reference,
        tolerance=1e-3,
        accumulates=True,  # the masks below the diagonal are not written
        counts_differences=True,
    ),
    Case(
        "overlap masks of boxes by class, int32",
        make_by_class,
        "void(int32[::1], int32[::1], int32[::1], int32[::1], uint8[::1], uint64[:, ::1])",
        BY_CLASS_CPP,
        by_class_work,
        by_class_reference,
        tolerance=0.0,
        counts_differences=True,
        wider=True,
    ),
)
