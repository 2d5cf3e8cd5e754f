"""Points and rays: the nearest center of k-means, rays against spheres, and Julia's set with literals of float64."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
FAR = np.float32(1e30)
NEAR = np.float32(1e-3)
DIMENSIONS = 8


def make_kmeans(cuda):
    @cuda.jit
    def assign(points, centers, labels):
        i = cuda.grid(1)
        if i < points.shape[1]:
            best = FAR
            label = 0
            for c in range(centers.shape[0]):
                distance = ZERO
                for d in range(centers.shape[1]):
                    difference = points[d, i] - centers[c, d]
                    distance += difference * difference
                if distance < best:
                    best = distance
                    label = c
            labels[i] = label

    return assign


KMEANS_CPP = """
extern "C" __global__ void peer(const float* points, const float* centers, int* labels, int n, int k, int dimensions) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float best = 1e30f;
        int label = 0;
        for (int c = 0; c < k; ++c) {
            float distance = 0.0f;
            for (int d = 0; d < dimensions; ++d) {
                float difference = points[d * n + i] - centers[c * dimensions + d];
                distance += difference * difference;
            }
            if (distance < best) {
                best = distance;
                label = c;
            }
        }
        labels[i] = label;
    }
}
"""


def kmeans_work(size: str) -> Work:
    n, k = sized(size, (1 << 20, 32), (500, 5), cpu=(1 << 18, 32))
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(random(80, DIMENSIONS, n), random(81, k, DIMENSIONS), np.empty(n, np.int32)),
        outputs=(2,),
        extents=(n, k, DIMENSIONS),
        n_bytes=4 * (DIMENSIONS + 1) * n,
        flops=3 * DIMENSIONS * k * n,
    )


def kmeans_reference(xp, args):
    points, centers = args[0].astype(xp.float64), args[1].astype(xp.float64)
    distances = xp.stack([((points - center[:, None]) ** 2).sum(axis=0) for center in centers])
    return (distances.argmin(axis=0),)


def make_rays(cuda):
    @cuda.jit
    def rays(spheres, nearest):
        x, y = cuda.grid(2)
        height, width = nearest.shape
        if x < width and y < height:
            dx = (np.float32(x) + HALF) / np.float32(width) - HALF
            dy = (np.float32(y) + HALF) / np.float32(height) - HALF
            length = math.sqrt(dx * dx + dy * dy + ONE)
            dx /= length
            dy /= length
            dz = ONE / length
            best = FAR
            found = -1
            for s in range(spheres.shape[0]):
                cx = spheres[s, 0]
                cy = spheres[s, 1]
                cz = spheres[s, 2]
                radius = spheres[s, 3]
                b = dx * cx + dy * cy + dz * cz
                disc = b * b - (cx * cx + cy * cy + cz * cz - radius * radius)
                if disc > ZERO:
                    t = b - math.sqrt(disc)
                    if t > NEAR and t < best:
                        best = t
                        found = s
            nearest[y, x] = found

    return rays


RAYS_CPP = """
extern "C" __global__ void peer(const float* spheres, int* nearest, int count, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float dx = (x + 0.5f) / width - 0.5f, dy = (y + 0.5f) / height - 0.5f;
        float length = sqrtf(dx * dx + dy * dy + 1.0f);
        dx /= length;
        dy /= length;
        float dz = 1.0f / length, best = 1e30f;
        int found = -1;
        for (int s = 0; s < count; ++s) {
            float cx = spheres[4 * s], cy = spheres[4 * s + 1], cz = spheres[4 * s + 2], radius = spheres[4 * s + 3];
            float b = dx * cx + dy * cy + dz * cz;
            float disc = b * b - (cx * cx + cy * cy + cz * cz - radius * radius);
            if (disc > 0.0f) {
                float t = b - sqrtf(disc);
                if (t > 1e-3f && t < best) {
                    best = t;
                    found = s;
                }
            }
        }
        nearest[y * width + x] = found;
    }
}
"""


def rays_work(size: str) -> Work:
    n, count = sized(size, (1024, 64), (40, 9), cpu=(512, 64))
    spheres = random(82, count, 4) * np.array([4, 4, 4, 0.4], np.float32) + np.array([-2, -2, 3, 0.1], np.float32)
    return Work(
        grid=(blocks(n, 16), blocks(n, 16)),
        block=(16, 16),
        args=(spheres, np.empty((n, n), np.int32)),
        outputs=(1,),
        extents=(count, n, n),
        n_bytes=4 * n * n,
        flops=16 * count * n * n,
    )


def rays_reference(xp, args):
    spheres, (height, width) = args[0].astype(xp.float64), args[1].shape
    dx = ((xp.arange(width) + 0.5) / width - 0.5)[None, :]
    dy = ((xp.arange(height) + 0.5) / height - 0.5)[:, None]
    length = xp.sqrt(dx * dx + dy * dy + 1)
    best, found = xp.full((height, width), 1e30), xp.full((height, width), -1, xp.int32)
    for s in range(len(spheres)):
        cx, cy, cz, radius = (float(value) for value in spheres[s])
        b = (dx * cx + dy * cy + cz) / length
        disc = b * b - (cx * cx + cy * cy + cz * cz - radius * radius)
        t = b - xp.sqrt(xp.maximum(disc, 0))
        hit = (disc > 0) & (t > 1e-3) & (t < best)
        best, found = xp.where(hit, t, best), xp.where(hit, s, found)
    return (found,)


def make_julia(cuda):
    @cuda.jit
    def julia(step, limit, out):
        column, row = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            x = -1.5 + column * step
            y = -1.5 + row * step
            count = 0
            while count < limit and x * x + y * y < 4.0:
                x, y = x * x - y * y - 0.8, 2.0 * x * y + 0.156
                count += 1
            out[row, column] = count

    return julia


def make_julia_narrow(cuda):
    @cuda.jit
    def julia(step, limit, out):
        column, row = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            # A 32-bit integer times float32 is float64 in NumPy.
            x = -1.5 + np.float32(column) * step
            y = -1.5 + np.float32(row) * step
            count = 0
            while count < limit and x * x + y * y < 4.0:
                x, y = x * x - y * y - 0.8, 2.0 * x * y + 0.156
                count += 1
            out[row, column] = count

    return julia


JULIA_CPP = """
extern "C" __global__ void peer(float step, int limit, int* out, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) {
        float x = -1.5f + column * step, y = -1.5f + row * step;
        int count = 0;
        while (count < limit && x * x + y * y < 4.0f) {
            float next = x * x - y * y - 0.8f;
            y = 2.0f * x * y + 0.156f;
            x = next;
            ++count;
        }
        out[row * n + column] = count;
    }
}
"""


def julia_work(size: str) -> Work:
    n = sized(size, 2048, 40, cpu=512)
    return Work(
        grid=(blocks(n, 16), blocks(n, 16)),
        block=(16, 16),
        args=(np.float32(3 / n), np.int32(200), np.empty((n, n), np.int32)),
        outputs=(2,),
        extents=(n,),
        n_bytes=4 * n * n,
    )


def julia_reference(xp, args):
    step, limit, out = float(args[0]), int(args[1]), args[2]
    x = xp.broadcast_to(-1.5 + xp.arange(out.shape[1])[None, :] * step, out.shape)
    y = xp.broadcast_to(-1.5 + xp.arange(out.shape[0])[:, None] * step, out.shape)
    count, inside = xp.zeros(out.shape, xp.int32), xp.ones(out.shape, bool)
    for _ in range(limit):
        inside &= x * x + y * y < 4
        count += inside
        # Points that have escaped are not changed, so that nothing overflows.
        x, y = xp.where(inside, x * x - y * y - 0.8, x), xp.where(inside, 2 * x * y + 0.156, y)
    return (count,)


CASES = (
    Case(
        "k-means, nearest center",
        make_kmeans,
        "void(float32[:, ::1], float32[:, ::1], int32[::1])",
        KMEANS_CPP,
        kmeans_work,
        kmeans_reference,
        tolerance=1e-3,
        counts_differences=True,
    ),
    Case(
        "rays against spheres",
        make_rays,
        "void(float32[:, ::1], int32[:, ::1])",
        RAYS_CPP,
        rays_work,
        rays_reference,
        tolerance=2e-3,
        counts_differences=True,
    ),
    Case(
        "Julia's set",
        make_julia,
        "void(float32, int32, int32[:, ::1])",
        JULIA_CPP,
        julia_work,
        julia_reference,
        tolerance=0.05,
        counts_differences=True,
        flops_of=lambda outputs: 8.0 * float(outputs[0].sum(dtype=np.int64)),
        wider=True,
        narrow=make_julia_narrow,
    ),
)
