"""n-body: accelerations of all pairs, with tiles of positions and masses in shared memory."""

from __future__ import annotations

import math

import numpy as np

from suite.case import Case, Work, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)
SOFTENING = np.float32(1e-3)


def make(cuda):
    @cuda.jit
    def nbody(x, y, z, mass, ax, ay, az):
        tile = cuda.shared.array((256, 4), np.float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        xi = x[i]
        yi = y[i]
        zi = z[i]
        sx = ZERO
        sy = ZERO
        sz = ZERO
        for start in range(0, x.size, 256):
            tile[tid, 0] = x[start + tid]
            tile[tid, 1] = y[start + tid]
            tile[tid, 2] = z[start + tid]
            tile[tid, 3] = mass[start + tid]
            cuda.syncthreads()
            for j in range(256):
                dx = tile[j, 0] - xi
                dy = tile[j, 1] - yi
                dz = tile[j, 2] - zi
                inverse = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
                scale = tile[j, 3] * inverse * inverse * inverse
                sx += dx * scale
                sy += dy * scale
                sz += dz * scale
            cuda.syncthreads()
        ax[i] = sx
        ay[i] = sy
        az[i] = sz

    return nbody


CPP = """
extern "C" __global__ void peer(const float* __restrict__ x, const float* __restrict__ y, const float* __restrict__ z,
                                const float* __restrict__ mass, float* __restrict__ ax, float* __restrict__ ay,
                                float* __restrict__ az, int n) {
    __shared__ float4 tile[256];
    int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
    float xi = x[i], yi = y[i], zi = z[i], sx = 0.0f, sy = 0.0f, sz = 0.0f;
    for (int start = 0; start < n; start += 256) {
        int k = start + tid;
        tile[tid] = make_float4(x[k], y[k], z[k], mass[k]);
        __syncthreads();
        for (int j = 0; j < 256; ++j) {
            float4 body = tile[j];
            float dx = body.x - xi, dy = body.y - yi, dz = body.z - zi;
            float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float scale = body.w * inverse * inverse * inverse;
            sx += dx * scale;
            sy += dy * scale;
            sz += dz * scale;
        }
        __syncthreads();
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}
"""


def work(size: str) -> Work:
    n = sized(size, 32768, 512, cpu=8192)
    return Work(
        grid=(n // 256,),
        block=(256,),
        args=(*(random(13 + k, n) for k in range(4)), *(np.empty(n, np.float32) for _ in range(3))),
        outputs=(4, 5, 6),
        extents=(n,),
        n_bytes=28 * n,
        # The usual operation count of an interaction; the division and the root count as one each.
        flops=20.0 * n * n,
    )


def reference(xp, args):
    places = xp.stack([array.astype(xp.float64) for array in args[:3]])
    mass = args[3].astype(xp.float64)
    out = xp.empty_like(places)
    for start in range(0, places.shape[1], 512):
        d = places[:, None, :] - places[:, start : start + 512, None]
        scale = mass / ((d * d).sum(axis=0) + float(SOFTENING)) ** 1.5
        out[:, start : start + 512] = (d * scale).sum(axis=2)
    return tuple(out)


SIGNATURE = "void(" + ", ".join(["float32[::1]"] * 7) + ")"
CASES = (Case("n-body", make, SIGNATURE, CPP, work, reference, tolerance=1e-4),)
