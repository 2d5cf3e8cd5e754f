"""Volumes: cubic B-spline interpolation, and a step of an acoustic wave with damped borders."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
HALF = np.float32(0.5)
ONE = np.float32(1)
TWO = np.float32(2)
SIXTH = np.float32(1 / 6)
TWO_THIRDS = np.float32(2 / 3)
# The second derivative of fourth order.
CENTER, NEAR, FAR = np.float32(-5 / 2), np.float32(4 / 3), np.float32(-1 / 12)
TILE_X, TILE_Y = 32, 8
SHARED_SHAPE = (TILE_Y + 4, TILE_X + 4)


def make_spline(cuda):
    @cuda.jit(device=True)
    def spline_weights(t):
        s = ONE - t
        return (
            SIXTH * s * s * s,
            TWO_THIRDS - HALF * t * t * (TWO - t),
            TWO_THIRDS - HALF * s * s * (TWO - s),
            SIXTH * t * t * t,
        )

    @cuda.jit(device=True)
    def split(coordinate):
        whole = math.floor(coordinate)
        return int(whole), np.float32(coordinate - whole)

    @cuda.jit
    def transform(volume, affine, out):
        x, y, z = cuda.grid(3)
        if z < out.shape[0] and y < out.shape[1] and x < out.shape[2]:
            fx = np.float32(x)
            fy = np.float32(y)
            fz = np.float32(z)
            x0, tx = split(affine[0, 0] * fx + affine[0, 1] * fy + affine[0, 2] * fz + affine[0, 3])
            y0, ty = split(affine[1, 0] * fx + affine[1, 1] * fy + affine[1, 2] * fz + affine[1, 3])
            z0, tz = split(affine[2, 0] * fx + affine[2, 1] * fy + affine[2, 2] * fz + affine[2, 3])
            wx = spline_weights(tx)
            wy = spline_weights(ty)
            wz = spline_weights(tz)
            total = ZERO
            for k in range(4):
                plane = min(max(z0 + k - 1, 0), volume.shape[0] - 1)
                for j in range(4):
                    row = min(max(y0 + j - 1, 0), volume.shape[1] - 1)
                    line = ZERO
                    for i in range(4):
                        column = min(max(x0 + i - 1, 0), volume.shape[2] - 1)
                        line += wx[i] * volume[plane, row, column]
                    total += wz[k] * wy[j] * line
            out[z, y, x] = total

    return transform


SPLINE_CPP = """
__device__ void spline_weights(float t, float w[4]) {
    float s = 1.0f - t;
    w[0] = (1.0f / 6) * s * s * s;
    w[1] = (2.0f / 3) - 0.5f * t * t * (2.0f - t);
    w[2] = (2.0f / 3) - 0.5f * s * s * (2.0f - s);
    w[3] = (1.0f / 6) * t * t * t;
}

__device__ int split(float coordinate, float& t) {
    float whole = floorf(coordinate);
    t = coordinate - whole;
    return (int)whole;
}

extern "C" __global__ void peer(const float* volume, const float* affine, float* out, int depth, int height, int width,
                                int out_depth, int out_height, int out_width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (z < out_depth && y < out_height && x < out_width) {
        float fx = x, fy = y, fz = z, tx, ty, tz, wx[4], wy[4], wz[4];
        int x0 = split(affine[0] * fx + affine[1] * fy + affine[2] * fz + affine[3], tx);
        int y0 = split(affine[4] * fx + affine[5] * fy + affine[6] * fz + affine[7], ty);
        int z0 = split(affine[8] * fx + affine[9] * fy + affine[10] * fz + affine[11], tz);
        spline_weights(tx, wx);
        spline_weights(ty, wy);
        spline_weights(tz, wz);
        float total = 0.0f;
        for (int k = 0; k < 4; ++k) {
            int plane = min(max(z0 + k - 1, 0), depth - 1);
            for (int j = 0; j < 4; ++j) {
                int row = min(max(y0 + j - 1, 0), height - 1);
                float line = 0.0f;
                for (int i = 0; i < 4; ++i) {
                    int column = min(max(x0 + i - 1, 0), width - 1);
                    line += wx[i] * volume[(plane * height + row) * width + column];
                }
                total += wz[k] * wy[j] * line;
            }
        }
        out[(z * out_height + y) * out_width + x] = total;
    }
}
"""


def spline_work(size: str) -> Work:
    n, out = sized(size, ((128, 128, 128), (192, 192, 192)), ((9, 11, 13), (10, 21, 37)),
                   cpu=((64, 64, 64), (48, 96, 96)))  # fmt: skip
    scale = [(extent + 3) / out_extent for extent, out_extent in zip(n, out, strict=True)]
    affine = np.array(
        [[scale[2], 0.02, -0.01, -2.3], [0.01, scale[1], 0.03, -1.7], [-0.02, 0.01, scale[0], -1.1]], np.float32
    )
    return Work(
        grid=(blocks(out[2], 32), blocks(out[1], 4), blocks(out[0], 2)),
        block=(32, 4, 2),
        args=(random(441, *n), affine, np.empty(out, np.float32)),
        outputs=(2,),
        extents=(*n, *out),
        n_bytes=4 * (math.prod(n) + math.prod(out)),
        flops=250 * math.prod(out),
    )


def spline_reference(xp, args):
    volume, affine, out = args[0].astype(xp.float64), args[1].astype(xp.float64), args[2]
    z, y, x = (xp.arange(extent) for extent in out.shape)
    indices, weights = [], []
    for row, extent in zip(affine[::-1], volume.shape, strict=True):
        at = row[0] * x + row[1] * y[:, None] + row[2] * z[:, None, None] + row[3]
        whole = xp.floor(at)
        t = at - whole
        s = 1 - t
        weights.append((s**3 / 6, 2 / 3 - t * t * (2 - t) / 2, 2 / 3 - s * s * (2 - s) / 2, t**3 / 6))
        indices.append([xp.clip(whole.astype(xp.int64) + k - 1, 0, extent - 1) for k in range(4)])
    total = xp.zeros(out.shape)
    for k in range(4):
        for j in range(4):
            for i in range(4):
                values = volume[indices[0][k], indices[1][j], indices[2][i]]
                total += weights[0][k] * weights[1][j] * weights[2][i] * values
    return (total,)


def make_wave(cuda):
    @cuda.jit(device=True)
    def second_derivative(center, before, after, far_before, far_after):
        return CENTER * center + NEAR * (before + after) + FAR * (far_before + far_after)

    @cuda.jit
    def acoustic_step(previous, now, speed, taper_z, taper_y, taper_x, future):
        tile = cuda.shared.array(SHARED_SHAPE, np.float32)
        depth, height, width = now.shape
        tx = cuda.threadIdx.x + 2
        ty = cuda.threadIdx.y + 2
        x = cuda.blockIdx.x * TILE_X + tx
        y = cuda.blockIdx.y * TILE_Y + ty
        inside = x < width - 2 and y < height - 2
        column = min(x, width - 1)
        row = min(y, height - 1)
        right = min(x + TILE_X, width - 1)
        lower = min(y + TILE_Y, height - 1)
        far_before = ZERO
        before = now[0, row, column]
        center = now[1, row, column]
        after = now[2, row, column]
        far_after = now[3, row, column]
        for z in range(2, depth - 2):
            far_before = before
            before = center
            center = after
            after = far_after
            far_after = now[z + 2, row, column]
            cuda.syncthreads()
            tile[ty, tx] = center
            if tx < 4:
                tile[ty, tx - 2] = now[z, row, x - 2]
                tile[ty, tx + TILE_X] = now[z, row, right]
            if ty < 4:
                tile[ty - 2, tx] = now[z, y - 2, column]
                tile[ty + TILE_Y, tx] = now[z, lower, column]
            cuda.syncthreads()
            if inside:
                laplacian = second_derivative(center, before, after, far_before, far_after)
                laplacian += second_derivative(
                    center, tile[ty - 1, tx], tile[ty + 1, tx], tile[ty - 2, tx], tile[ty + 2, tx]
                )
                laplacian += second_derivative(
                    center, tile[ty, tx - 1], tile[ty, tx + 1], tile[ty, tx - 2], tile[ty, tx + 2]
                )
                taper = taper_z[z] * taper_y[y] * taper_x[x]
                value = TWO * center - taper * previous[z, y, x] + speed[z, y, x] * laplacian
                future[z, y, x] = taper * value

    return acoustic_step


WAVE_CPP = f"""
#define TILE_X {TILE_X}
#define TILE_Y {TILE_Y}
__device__ float second_derivative(float center, float before, float after, float far_before, float far_after) {{
    return (-5.0f / 2) * center + (4.0f / 3) * (before + after) + (-1.0f / 12) * (far_before + far_after);
}}

extern "C" __global__ void peer(const float* previous, const float* now, const float* speed, const float* taper_z,
                                const float* taper_y, const float* taper_x, float* future, int depth, int height,
                                int width) {{
    __shared__ float tile[TILE_Y + 4][TILE_X + 4];
    int tx = threadIdx.x + 2, ty = threadIdx.y + 2;
    int x = blockIdx.x * TILE_X + tx, y = blockIdx.y * TILE_Y + ty;
    bool inside = x < width - 2 && y < height - 2;
    int column = min(x, width - 1), row = min(y, height - 1);
    int right = min(x + TILE_X, width - 1), lower = min(y + TILE_Y, height - 1);
    int plane = height * width, at = row * width + column;
    float far_before = 0.0f, before = now[at], center = now[plane + at], after = now[2 * plane + at];
    float far_after = now[3 * plane + at];
    for (int z = 2; z < depth - 2; ++z) {{
        far_before = before;
        before = center;
        center = after;
        after = far_after;
        far_after = now[(z + 2) * plane + at];
        __syncthreads();
        tile[ty][tx] = center;
        if (tx < 4) {{
            tile[ty][tx - 2] = now[z * plane + row * width + x - 2];
            tile[ty][tx + TILE_X] = now[z * plane + row * width + right];
        }}
        if (ty < 4) {{
            tile[ty - 2][tx] = now[z * plane + (y - 2) * width + column];
            tile[ty + TILE_Y][tx] = now[z * plane + lower * width + column];
        }}
        __syncthreads();
        if (inside) {{
            float laplacian = second_derivative(center, before, after, far_before, far_after);
            laplacian += second_derivative(center, tile[ty - 1][tx], tile[ty + 1][tx], tile[ty - 2][tx],
                                           tile[ty + 2][tx]);
            laplacian += second_derivative(center, tile[ty][tx - 1], tile[ty][tx + 1], tile[ty][tx - 2],
                                           tile[ty][tx + 2]);
            int i = z * plane + y * width + x;
            float taper = taper_z[z] * taper_y[y] * taper_x[x];
            float value = 2.0f * center - taper * previous[i] + speed[i] * laplacian;
            future[i] = taper * value;
        }}
    }}
}}
"""


def tapers(extent: int) -> np.ndarray:
    """Factors that damp waves within 20 cells of the borders."""
    distance = np.minimum(np.arange(extent), np.arange(extent)[::-1])
    return np.exp(-((0.015 * np.maximum(20 - distance, 0)) ** 2)).astype(np.float32)


def wave_work(size: str) -> Work:
    shape = sized(size, (100, 420, 484), (9, 19, 75), cpu=(84, 324, 356))
    depth, height, width = shape
    return Work(
        grid=(blocks(width - 4, TILE_X), blocks(height - 4, TILE_Y)),
        block=(TILE_X, TILE_Y),
        args=(
            random(442, *shape), random(443, *shape), random(444, *shape) * np.float32(0.1),
            tapers(depth), tapers(height), tapers(width), np.empty(shape, np.float32),
        ),
        outputs=(6,),
        extents=shape,
        n_bytes=16 * math.prod(shape),
        flops=30 * math.prod(shape),
    )  # fmt: skip


def wave_reference(xp, args):
    previous, now, speed, taper_z, taper_y, taper_x, _ = (each.astype(xp.float64) for each in args)
    inner = (slice(2, -2),) * 3
    laplacian = -7.5 * now[inner]
    for axis, extent in enumerate(now.shape):
        for distance, weight in ((1, 4 / 3), (2, -1 / 12)):
            for offset in (-distance, distance):
                moved = list(inner)
                moved[axis] = slice(2 + offset, extent - 2 + offset)
                laplacian += weight * now[tuple(moved)]
    taper = (taper_z[:, None, None] * taper_y[:, None] * taper_x)[inner]
    future = xp.zeros(now.shape)
    future[inner] = taper * (2 * now[inner] - taper * previous[inner] + speed[inner] * laplacian)
    return (future,)


CASES = (
    Case(
        "cubic B-spline, affine transform of a volume",
        make_spline,
        "void(float32[:, :, ::1], float32[:, ::1], float32[:, :, ::1])",
        SPLINE_CPP,
        spline_work,
        spline_reference,
        tolerance=1e-4,  # a coordinate has 24 bits, 7 of them before the point
    ),
    Case(
        "acoustic wave, damped, of fourth order",
        make_wave,
        "void(float32[:, :, ::1], float32[:, :, ::1], float32[:, :, ::1], float32[::1], float32[::1], float32[::1], "
        "float32[:, :, ::1])",
        WAVE_CPP,
        wave_work,
        wave_reference,
        accumulates=True,  # the borders are never written
    ),
)
