"""Volumes and grids: rays through a volume with trilinear samples, shallow water, and a wave in float64."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)


def make_projection(cuda):
    @cuda.jit(device=True)
    def mix(a, b, t):
        return a + t * (b - a)

    @cuda.jit(device=True)
    def trilinear(volume, x, y, z):
        depth, height, width = volume.shape
        fx = math.floor(x)
        fy = math.floor(y)
        fz = math.floor(z)
        i = int(fx)
        j = int(fy)
        k = int(fz)
        if i < 0 or j < 0 or k < 0 or i >= width - 1 or j >= height - 1 or k >= depth - 1:
            return ZERO
        tx = np.float32(x - fx)
        ty = np.float32(y - fy)
        tz = np.float32(z - fz)
        front = mix(
            mix(volume[k, j, i], volume[k, j, i + 1], tx),
            mix(volume[k, j + 1, i], volume[k, j + 1, i + 1], tx),
            ty,
        )
        back = mix(
            mix(volume[k + 1, j, i], volume[k + 1, j, i + 1], tx),
            mix(volume[k + 1, j + 1, i], volume[k + 1, j + 1, i + 1], tx),
            ty,
        )
        return mix(front, back, tz)

    @cuda.jit
    def project(volume, axes, n_steps, total, brightest):
        column, row = cuda.grid(2)
        rows, columns = total.shape
        if column < columns and row < rows:
            u = np.float32(column - columns // 2)
            v = np.float32(row - rows // 2)
            x = axes[0, 0] + u * axes[1, 0] + v * axes[2, 0]
            y = axes[0, 1] + u * axes[1, 1] + v * axes[2, 1]
            z = axes[0, 2] + u * axes[1, 2] + v * axes[2, 2]
            integral = ZERO
            highest = ZERO
            for step in range(n_steps):
                s = np.float32(step - n_steps // 2)
                value = trilinear(volume, x + s * axes[3, 0], y + s * axes[3, 1], z + s * axes[3, 2])
                integral += value
                highest = max(highest, value)
            total[row, column] = integral
            brightest[row, column] = highest

    return project


PROJECTION_CPP = """
__device__ float mix(float a, float b, float t) { return a + t * (b - a); }
__device__ float trilinear(const float* volume, int depth, int height, int width, float x, float y, float z) {
    float fx = floorf(x), fy = floorf(y), fz = floorf(z);
    int i = (int)fx, j = (int)fy, k = (int)fz;
    if (i < 0 || j < 0 || k < 0 || i >= width - 1 || j >= height - 1 || k >= depth - 1) return 0.0f;
    float tx = x - fx, ty = y - fy, tz = z - fz;
    const float* a = volume + (k * height + j) * width + i;
    const float* b = volume + (k * height + j + 1) * width + i;
    const float* c = volume + ((k + 1) * height + j) * width + i;
    const float* d = volume + ((k + 1) * height + j + 1) * width + i;
    float front = mix(mix(a[0], a[1], tx), mix(b[0], b[1], tx), ty);
    float back = mix(mix(c[0], c[1], tx), mix(d[0], d[1], tx), ty);
    return mix(front, back, tz);
}
extern "C" __global__ void peer(const float* volume, const float* axes, int n_steps, float* total, float* brightest,
                                int depth, int height, int width, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < columns && row < rows) {
        float u = column - columns / 2, v = row - rows / 2;
        float x = axes[0] + u * axes[3] + v * axes[6];
        float y = axes[1] + u * axes[4] + v * axes[7];
        float z = axes[2] + u * axes[5] + v * axes[8];
        float integral = 0.0f, highest = 0.0f;
        for (int step = 0; step < n_steps; ++step) {
            float s = step - n_steps / 2;
            float value = trilinear(volume, depth, height, width, x + s * axes[9], y + s * axes[10], z + s * axes[11]);
            integral += value;
            highest = fmaxf(highest, value);
        }
        total[row * columns + column] = integral;
        brightest[row * columns + column] = highest;
    }
}
"""


def projection_work(size: str) -> Work:
    side, image, n_steps = sized(size, (256, 512, 300), (20, 35, 31), cpu=(64, 128, 128))
    rotation, _ = np.linalg.qr(np.random.default_rng(170).standard_normal((3, 3)))
    scale = np.array([side / image, side / image, side / n_steps])[:, None]
    axes = np.concatenate([np.full((1, 3), side / 2), rotation * scale * 1.2]).astype(np.float32)
    volume = random(171, side - 3, side, side + 2)
    return Work(
        grid=(blocks(image, 16), blocks(image, 16)),
        block=(16, 16),
        args=(
            volume, axes, np.int32(n_steps), np.empty((image, image), np.float32), np.empty((image, image), np.float32),
        ),
        outputs=(3, 4),
        extents=(*volume.shape, image, image),
        n_bytes=4 * volume.size + 8 * image * image,
        flops=30 * image * image * n_steps,
    )  # fmt: skip


def projection_reference(xp, args):
    volume, axes, n_steps, total, _ = args
    rows, columns = total.shape
    n_steps, axes, volume = int(n_steps), axes.astype(xp.float64), volume.astype(xp.float64)
    u = (xp.arange(columns) - columns // 2)[None, :, None]
    v = (xp.arange(rows) - rows // 2)[:, None, None]
    start = axes[0] + u * axes[1] + v * axes[2]
    integral, highest = xp.zeros((rows, columns)), xp.zeros((rows, columns))
    limits = xp.asarray([extent - 2 for extent in reversed(volume.shape)])
    for step in range(n_steps):
        point = start + (step - n_steps // 2) * axes[3]
        corner = xp.floor(point)
        inside = ((corner >= 0) & (corner <= limits)).all(axis=2)
        fraction = point - corner
        cell = xp.clip(corner, 0, limits).astype(xp.int64)
        value = xp.zeros((rows, columns))
        for dz in range(2):
            for dy in range(2):
                for dx in range(2):
                    weight = abs(1 - dx - fraction[..., 0]) * abs(1 - dy - fraction[..., 1])
                    weight *= abs(1 - dz - fraction[..., 2])
                    value += weight * volume[cell[..., 2] + dz, cell[..., 1] + dy, cell[..., 0] + dx]
        value = xp.where(inside, value, 0)
        integral += value
        highest = xp.maximum(highest, value)
    return integral, highest


def make_water(cuda):
    @cuda.jit(device=True)
    def speeds(h, hu, hv):
        h = max(h, 1e-4)
        u = hu / h
        v = hv / h
        return u, v, math.sqrt(9.81 * h)

    @cuda.jit(device=True)
    def flux_x(h, hu, hv):
        u, _, c = speeds(h, hu, hv)
        return hu, hu * u + 0.5 * 9.81 * h * h, hv * u, abs(u) + c

    @cuda.jit(device=True)
    def flux_y(h, hu, hv):
        _, v, c = speeds(h, hu, hv)
        return hv, hu * v, hv * v + 0.5 * 9.81 * h * h, abs(v) + c

    @cuda.jit(device=True)
    def rusanov(left, right, flux_left, flux_right):
        speed = max(flux_left[3], flux_right[3])
        return (
            0.5 * (flux_left[0] + flux_right[0]) - 0.5 * speed * (right[0] - left[0]),
            0.5 * (flux_left[1] + flux_right[1]) - 0.5 * speed * (right[1] - left[1]),
            0.5 * (flux_left[2] + flux_right[2]) - 0.5 * speed * (right[2] - left[2]),
        )

    @cuda.jit(device=True)
    def face_x(left, right):
        return rusanov(left, right, flux_x(left[0], left[1], left[2]), flux_x(right[0], right[1], right[2]))

    @cuda.jit(device=True)
    def face_y(left, right):
        return rusanov(left, right, flux_y(left[0], left[1], left[2]), flux_y(right[0], right[1], right[2]))

    @cuda.jit
    def shallow_water(h, hu, hv, bed, dt, dx, h_new, hu_new, hv_new):
        i, j = cuda.grid(2)
        rows, columns = h.shape
        if i < 1 or j < 1 or i >= columns - 1 or j >= rows - 1:
            return
        center = (h[j, i], hu[j, i], hv[j, i])
        west = (h[j, i - 1], hu[j, i - 1], hv[j, i - 1])
        east = (h[j, i + 1], hu[j, i + 1], hv[j, i + 1])
        south = (h[j - 1, i], hu[j - 1, i], hv[j - 1, i])
        north = (h[j + 1, i], hu[j + 1, i], hv[j + 1, i])
        f_west = face_x(west, center)
        f_east = face_x(center, east)
        f_south = face_y(south, center)
        f_north = face_y(center, north)
        slope_x = (bed[j, i + 1] - bed[j, i - 1]) / (2.0 * dx)
        slope_y = (bed[j + 1, i] - bed[j - 1, i]) / (2.0 * dx)
        r = dt / dx
        depth = center[0] - r * (f_east[0] - f_west[0] + f_north[0] - f_south[0])
        momentum_x = center[1] - r * (f_east[1] - f_west[1] + f_north[1] - f_south[1]) - dt * 9.81 * center[0] * slope_x
        momentum_y = center[2] - r * (f_east[2] - f_west[2] + f_north[2] - f_south[2]) - dt * 9.81 * center[0] * slope_y
        friction = 1.0 / (1.0 + 0.01 * dt)
        h_new[j, i] = max(depth, 0.0)
        hu_new[j, i] = momentum_x * friction
        hv_new[j, i] = momentum_y * friction

    return shallow_water


WATER_CPP = """
struct State { float h, hu, hv; };
struct Flux { float h, hu, hv, speed; };
__device__ void speeds(State s, float& u, float& v, float& c) {
    float h = fmaxf(s.h, 1e-4f);
    u = s.hu / h;
    v = s.hv / h;
    c = sqrtf(9.81f * h);
}
__device__ Flux flux_x(State s) {
    float u, v, c;
    speeds(s, u, v, c);
    return {s.hu, s.hu * u + 0.5f * 9.81f * s.h * s.h, s.hv * u, fabsf(u) + c};
}
__device__ Flux flux_y(State s) {
    float u, v, c;
    speeds(s, u, v, c);
    return {s.hv, s.hu * v, s.hv * v + 0.5f * 9.81f * s.h * s.h, fabsf(v) + c};
}
__device__ State rusanov(State left, State right, Flux a, Flux b) {
    float speed = fmaxf(a.speed, b.speed);
    return {0.5f * (a.h + b.h) - 0.5f * speed * (right.h - left.h),
            0.5f * (a.hu + b.hu) - 0.5f * speed * (right.hu - left.hu),
            0.5f * (a.hv + b.hv) - 0.5f * speed * (right.hv - left.hv)};
}
__device__ State face_x(State left, State right) { return rusanov(left, right, flux_x(left), flux_x(right)); }
__device__ State face_y(State left, State right) { return rusanov(left, right, flux_y(left), flux_y(right)); }
extern "C" __global__ void peer(const float* h, const float* hu, const float* hv, const float* bed, float dt, float dx,
                                float* h_new, float* hu_new, float* hv_new, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= columns - 1 || j >= rows - 1) return;
    int c = j * columns + i, w = c - 1, e = c + 1, s = c - columns, n = c + columns;
    State center = {h[c], hu[c], hv[c]}, west = {h[w], hu[w], hv[w]}, east = {h[e], hu[e], hv[e]};
    State south = {h[s], hu[s], hv[s]}, north = {h[n], hu[n], hv[n]};
    State f_west = face_x(west, center), f_east = face_x(center, east);
    State f_south = face_y(south, center), f_north = face_y(center, north);
    float slope_x = (bed[e] - bed[w]) / (2.0f * dx), slope_y = (bed[n] - bed[s]) / (2.0f * dx);
    float r = dt / dx;
    float depth = center.h - r * (f_east.h - f_west.h + f_north.h - f_south.h);
    float momentum_x =
        center.hu - r * (f_east.hu - f_west.hu + f_north.hu - f_south.hu) - dt * 9.81f * center.h * slope_x;
    float momentum_y =
        center.hv - r * (f_east.hv - f_west.hv + f_north.hv - f_south.hv) - dt * 9.81f * center.h * slope_y;
    float friction = 1.0f / (1.0f + 0.01f * dt);
    h_new[c] = fmaxf(depth, 0.0f);
    hu_new[c] = momentum_x * friction;
    hv_new[c] = momentum_y * friction;
}
"""


def water_work(size: str) -> Work:
    rows, columns = sized(size, (2048, 2048), (27, 70), cpu=(1024, 2048))
    state = random(172, 3, rows, columns) - np.float32(0.5)
    return Work(
        grid=(blocks(columns, 32), blocks(rows, 8)),
        block=(32, 8),
        args=(
            state[0] + np.float32(2), state[1].copy(), state[2].copy(), random(173, rows, columns),
            np.float32(0.01), np.float32(1), *(np.empty((rows, columns), np.float32) for _ in range(3)),
        ),
        outputs=(6, 7, 8),
        extents=(rows, columns),
        n_bytes=28 * rows * columns,
        flops=150 * rows * columns,
    )  # fmt: skip


def water_reference(xp, args):
    h, hu, hv, bed = (arg.astype(xp.float64) for arg in args[:4])
    dt, dx = float(args[4]), float(args[5])
    depth = xp.maximum(h, 1e-4)
    u, v, c = hu / depth, hv / depth, xp.sqrt(9.81 * depth)
    pressure = 0.5 * 9.81 * h * h
    state = xp.stack([h, hu, hv])
    along_x, along_y = xp.stack([hu, hu * u + pressure, hv * u]), xp.stack([hv, hu * v, hv * v + pressure])
    speed_x, speed_y = abs(u) + c, abs(v) + c
    left, right = (..., slice(None, -1)), (..., slice(1, None))
    face_x = 0.5 * (along_x[left] + along_x[right])
    face_x -= 0.5 * xp.maximum(speed_x[left], speed_x[right]) * (state[right] - state[left])
    low, high = (..., slice(None, -1), slice(None)), (..., slice(1, None), slice(None))
    face_y = 0.5 * (along_y[low] + along_y[high])
    face_y -= 0.5 * xp.maximum(speed_y[low], speed_y[high]) * (state[high] - state[low])
    new = state[:, 1:-1, 1:-1] - dt / dx * (
        face_x[:, 1:-1, 1:] - face_x[:, 1:-1, :-1] + face_y[:, 1:, 1:-1] - face_y[:, :-1, 1:-1]
    )
    inner = h[1:-1, 1:-1]
    new[1] -= dt * 9.81 * inner * (bed[1:-1, 2:] - bed[1:-1, :-2]) / (2 * dx)
    new[2] -= dt * 9.81 * inner * (bed[2:, 1:-1] - bed[:-2, 1:-1]) / (2 * dx)
    new[1:] /= 1 + 0.01 * dt
    new[0] = xp.maximum(new[0], 0)
    padded = xp.zeros(state.shape)
    padded[:, 1:-1, 1:-1] = new
    return tuple(padded)


def make_wave(cuda):
    @cuda.jit
    def wave(u, previous, velocity, factor, out):
        i, j, k = cuda.grid(3)
        nz, ny, nx = u.shape
        if 2 <= i < nx - 2 and 2 <= j < ny - 2 and 2 <= k < nz - 2:
            c = u[k, j, i]
            laplacian = -7.5 * c
            laplacian += 4.0 / 3.0 * (u[k, j, i - 1] + u[k, j, i + 1])
            laplacian += 4.0 / 3.0 * (u[k, j - 1, i] + u[k, j + 1, i])
            laplacian += 4.0 / 3.0 * (u[k - 1, j, i] + u[k + 1, j, i])
            laplacian -= (u[k, j, i - 2] + u[k, j, i + 2]) / 12.0
            laplacian -= (u[k, j - 2, i] + u[k, j + 2, i]) / 12.0
            laplacian -= (u[k - 2, j, i] + u[k + 2, j, i]) / 12.0
            out[k, j, i] = 2.0 * c - previous[k, j, i] + factor * velocity[k, j, i] ** 2 * laplacian

    return wave


WAVE_CPP = """
extern "C" __global__ void peer(const double* u, const double* previous, const double* velocity, double factor,
                                double* out, int nz, int ny, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (2 <= i && i < nx - 2 && 2 <= j && j < ny - 2 && 2 <= k && k < nz - 2) {
        int at = (k * ny + j) * nx + i, row = nx, plane = ny * nx;
        double c = u[at];
        double laplacian = -7.5 * c;
        laplacian += 4.0 / 3.0 * (u[at - 1] + u[at + 1]);
        laplacian += 4.0 / 3.0 * (u[at - row] + u[at + row]);
        laplacian += 4.0 / 3.0 * (u[at - plane] + u[at + plane]);
        laplacian -= (u[at - 2] + u[at + 2]) / 12.0;
        laplacian -= (u[at - 2 * row] + u[at + 2 * row]) / 12.0;
        laplacian -= (u[at - 2 * plane] + u[at + 2 * plane]) / 12.0;
        out[at] = 2.0 * c - previous[at] + factor * (velocity[at] * velocity[at]) * laplacian;
    }
}
"""


def wave_work(size: str) -> Work:
    nz, ny, nx = sized(size, (256, 256, 256), (9, 14, 37), cpu=(128, 192, 192))
    u, previous, velocity = (random(174 + k, nz, ny, nx).astype(np.float64) for k in range(3))
    return Work(
        grid=(blocks(nx, 32), blocks(ny, 4), blocks(nz, 2)),
        block=(32, 4, 2),
        args=(u, previous, velocity, np.float64(0.1), np.empty((nz, ny, nx))),
        outputs=(4,),
        extents=(nz, ny, nx),
        n_bytes=32 * nz * ny * nx,
        flops=23 * nz * ny * nx,
    )


def wave_reference(xp, args):
    u, previous, velocity, factor, out = args
    laplacian = -7.5 * u
    for axis in range(3):
        laplacian += 4 / 3 * (xp.roll(u, 1, axis) + xp.roll(u, -1, axis))
        laplacian -= (xp.roll(u, 2, axis) + xp.roll(u, -2, axis)) / 12
    expected = xp.zeros(out.shape)
    inner = (slice(2, -2),) * 3
    expected[inner] = (2 * u - previous + float(factor) * velocity**2 * laplacian)[inner]
    return (expected,)


CASES = (
    Case(
        "projection of a volume, trilinear samples",
        make_projection,
        "void(float32[:, :, ::1], float32[:, ::1], int32, float32[:, ::1], float32[:, ::1])",
        PROJECTION_CPP,
        projection_work,
        projection_reference,
        tolerance=2e-2,  # samples within a rounding of the volume's faces
    ),
    Case(
        "shallow water, finite volumes",
        make_water,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1], float32, float32, "
        "float32[:, ::1], float32[:, ::1], float32[:, ::1])",
        WATER_CPP,
        water_work,
        water_reference,
        accumulates=True,  # the borders are not written
        wider=True,
    ),
    Case(
        "wave of fourth order, float64",
        make_wave,
        "void(float64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1], float64, float64[:, :, ::1])",
        WAVE_CPP,
        wave_work,
        wave_reference,
        tolerance=1e-13,
        accumulates=True,  # the borders are not written
    ),
)
