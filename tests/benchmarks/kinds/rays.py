"""Rays: two scenes of signed distance functions that a ray marches through, and rays against a list of spheres."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

FAR = np.float32(1e30)
ONE = np.float32(1)
ZERO = np.float32(0)


def make_solids(cuda):
    @cuda.jit(device=True)
    def sphere(x, y, z, radius):
        return math.sqrt(x * x + y * y + z * z) - radius

    @cuda.jit(device=True)
    def box(x, y, z, half):
        dx = abs(x) - half
        dy = abs(y) - half
        dz = abs(z) - half
        ox = max(dx, 0.0)
        oy = max(dy, 0.0)
        oz = max(dz, 0.0)
        return math.sqrt(ox * ox + oy * oy + oz * oz) + min(max(dx, max(dy, dz)), 0.0)

    @cuda.jit(device=True)
    def torus(x, y, z, large, small):
        q = math.sqrt(x * x + z * z) - large
        return math.sqrt(q * q + y * y) - small

    @cuda.jit(device=True)
    def smooth_min(a, b, k):
        h = max(k - abs(a - b), 0.0) / k
        return min(a, b) - h * h * k * 0.25

    @cuda.jit(device=True)
    def scene(x, y, z):
        ball = sphere(x - 0.6, y - 0.3, z, 0.7)
        cube = box(x + 0.7, y, z - 0.2, 0.6)
        ring = torus(x, y + 0.4, z, 1.5, 0.2)
        floor = y + 1.0
        return min(floor, smooth_min(ring, smooth_min(ball, cube, 0.3), 0.2))

    @cuda.jit
    def march_solids(eye_x, eye_y, eye_z, out):
        px, py = cuda.grid(2)
        height, width = out.shape
        if px < width and py < height:
            dx = (np.float32(px) - 0.5 * width) / height
            dy = (0.5 * height - np.float32(py)) / height
            dz = 1.0
            norm = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz)
            dx *= norm
            dy *= norm
            dz *= norm
            t = 0.0
            steps = 0
            hit = False
            while steps < 96 and t < 20.0:
                d = scene(eye_x + t * dx, eye_y + t * dy, eye_z + t * dz)
                if d < 0.001:
                    hit = True
                    break
                t += d
                steps += 1
            shade = 0.0
            if hit:
                x = eye_x + t * dx
                y = eye_y + t * dy
                z = eye_z + t * dz
                e = 0.01
                nx = scene(x + e, y, z) - scene(x - e, y, z)
                ny = scene(x, y + e, z) - scene(x, y - e, z)
                nz = scene(x, y, z + e) - scene(x, y, z - e)
                length = math.sqrt(nx * nx + ny * ny + nz * nz)
                shade = 0.15 + 0.85 * max((0.5 * nx + 0.7 * ny - 0.5 * nz) / length, 0.0)
            out[py, px] = shade

    return march_solids


SOLIDS_CPP = """
__device__ float sphere(float x, float y, float z, float radius) { return sqrtf(x * x + y * y + z * z) - radius; }
__device__ float box(float x, float y, float z, float half) {
    float dx = fabsf(x) - half, dy = fabsf(y) - half, dz = fabsf(z) - half;
    float ox = fmaxf(dx, 0.0f), oy = fmaxf(dy, 0.0f), oz = fmaxf(dz, 0.0f);
    return sqrtf(ox * ox + oy * oy + oz * oz) + fminf(fmaxf(dx, fmaxf(dy, dz)), 0.0f);
}
__device__ float torus(float x, float y, float z, float large, float small) {
    float q = sqrtf(x * x + z * z) - large;
    return sqrtf(q * q + y * y) - small;
}
__device__ float smooth_min(float a, float b, float k) {
    float h = fmaxf(k - fabsf(a - b), 0.0f) / k;
    return fminf(a, b) - h * h * k * 0.25f;
}
__device__ float scene(float x, float y, float z) {
    float ball = sphere(x - 0.6f, y - 0.3f, z, 0.7f);
    float cube = box(x + 0.7f, y, z - 0.2f, 0.6f);
    float ring = torus(x, y + 0.4f, z, 1.5f, 0.2f);
    float floor = y + 1.0f;
    return fminf(floor, smooth_min(ring, smooth_min(ball, cube, 0.3f), 0.2f));
}
extern "C" __global__ void peer(float eye_x, float eye_y, float eye_z, float* out, int height, int width) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px < width && py < height) {
        float dx = (px - 0.5f * width) / height, dy = (0.5f * height - py) / height, dz = 1.0f;
        float norm = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz);
        dx *= norm;
        dy *= norm;
        dz *= norm;
        float t = 0.0f;
        int steps = 0;
        bool hit = false;
        while (steps < 96 && t < 20.0f) {
            float d = scene(eye_x + t * dx, eye_y + t * dy, eye_z + t * dz);
            if (d < 0.001f) {
                hit = true;
                break;
            }
            t += d;
            ++steps;
        }
        float shade = 0.0f;
        if (hit) {
            float x = eye_x + t * dx, y = eye_y + t * dy, z = eye_z + t * dz, e = 0.01f;
            float nx = scene(x + e, y, z) - scene(x - e, y, z);
            float ny = scene(x, y + e, z) - scene(x, y - e, z);
            float nz = scene(x, y, z + e) - scene(x, y, z - e);
            float length = sqrtf(nx * nx + ny * ny + nz * nz);
            shade = 0.15f + 0.85f * fmaxf((0.5f * nx + 0.7f * ny - 0.5f * nz) / length, 0.0f);
        }
        out[py * width + px] = shade;
    }
}
"""


def solids_work(size: str) -> Work:
    height, width = sized(size, (1080, 1920), (30, 45), cpu=(135, 240))
    eye = (np.float32(0.1), np.float32(0.4), np.float32(-3))
    return Work(
        grid=(blocks(width, 16), blocks(height, 16)),
        block=(16, 16),
        args=(*eye, np.empty((height, width), np.float32)),
        outputs=(3,),
        extents=(height, width),
        n_bytes=4 * height * width,
        flops=1000 * height * width,
    )


def solids_reference(xp, args):
    *eye, out = args
    eye_x, eye_y, eye_z = (float(value) for value in eye)
    height, width = out.shape

    def smooth_min(a, b, k):
        h = xp.maximum(k - abs(a - b), 0) / k
        return xp.minimum(a, b) - h * h * k * 0.25

    def scene(x, y, z):
        ball = xp.sqrt((x - 0.6) ** 2 + (y - 0.3) ** 2 + z**2) - 0.7
        dx, dy, dz = abs(x + 0.7) - 0.6, abs(y) - 0.6, abs(z - 0.2) - 0.6
        outside = xp.sqrt(xp.maximum(dx, 0) ** 2 + xp.maximum(dy, 0) ** 2 + xp.maximum(dz, 0) ** 2)
        cube = outside + xp.minimum(xp.maximum(dx, xp.maximum(dy, dz)), 0)
        ring = xp.sqrt((xp.sqrt(x * x + z * z) - 1.5) ** 2 + (y + 0.4) ** 2) - 0.2
        return xp.minimum(y + 1, smooth_min(ring, smooth_min(ball, cube, 0.3), 0.2))

    py, px = xp.meshgrid(xp.arange(height), xp.arange(width), indexing="ij")
    dx, dy = (px - 0.5 * width) / height, (0.5 * height - py) / height
    norm = 1 / xp.sqrt(dx * dx + dy * dy + 1)
    dx, dy, dz = dx * norm, dy * norm, norm
    t, hit = xp.zeros((height, width)), xp.zeros((height, width), bool)
    for _ in range(96):
        d = scene(eye_x + t * dx, eye_y + t * dy, eye_z + t * dz)
        active = ~hit & (t < 20)
        hit |= active & (d < 0.001)
        t = xp.where(active & ~hit, t + d, t)
    x, y, z, e = eye_x + t * dx, eye_y + t * dy, eye_z + t * dz, 0.01
    nx = scene(x + e, y, z) - scene(x - e, y, z)
    ny = scene(x, y + e, z) - scene(x, y - e, z)
    nz = scene(x, y, z + e) - scene(x, y, z - e)
    light = (0.5 * nx + 0.7 * ny - 0.5 * nz) / xp.sqrt(nx * nx + ny * ny + nz * nz)
    return (xp.where(hit, 0.15 + 0.85 * xp.maximum(light, 0), 0),)


def make_pillars(cuda):
    @cuda.jit(device=True)
    def along(origin, direction, t):
        return (origin[0] + t * direction[0], origin[1] + t * direction[1], origin[2] + t * direction[2])

    @cuda.jit(device=True)
    def dot(a, b):
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]

    @cuda.jit(device=True)
    def repeat(value, period):
        return value - period * math.floor(value / period + 0.5)

    @cuda.jit(device=True)
    def distance(point):
        x = repeat(point[0], 4.0)
        z = repeat(point[2], 4.0)
        pillar = max(math.hypot(x, z) - 0.5, abs(point[1]) - 2.0)
        knob = math.sqrt(x * x + (point[1] - 1.5) * (point[1] - 1.5) + z * z) - 0.9
        ground = point[1] + 2.0
        if ground < pillar and ground < knob:
            return ground, 0
        if pillar < knob:
            return pillar, 1
        return knob, 2

    @cuda.jit
    def march_pillars(camera, light, colors, image, limit):
        i = cuda.grid(1)
        width = image.shape[1]
        if i >= image.shape[0] * width:
            return
        row, column = divmod(i, width)
        origin = (camera[0], camera[1], camera[2])
        direction = (
            camera[3] + np.float32(column) * camera[6] / width - 0.5 * camera[6],
            camera[4] + 0.5 * camera[7] - np.float32(row) * camera[7] / image.shape[0],
            camera[5],
        )
        scale = 1.0 / math.sqrt(dot(direction, direction))
        direction = (direction[0] * scale, direction[1] * scale, direction[2] * scale)
        t = 0.0
        d, material = distance(origin)
        steps = 0
        while d > 0.002 * t and t < 40.0 and steps < limit:
            t += d
            d, material = distance(along(origin, direction, t))
            steps += 1
        # A second ray, to the light: the closest miss makes the penumbra.
        sun = (light[0], light[1], light[2])
        start = along(origin, direction, t - 0.01)
        visible = 1.0
        s = 0.05
        while s < 8.0 and visible > 0.01:
            d, _ = distance(along(start, sun, s))
            visible = min(visible, 8.0 * d / s)
            s += max(d, 0.05)
        fog = math.exp(-0.05 * t)
        for channel in range(3):
            image[row, column, channel] = colors[material, channel] * fog * (0.2 + 0.8 * max(visible, 0.0))

    return march_pillars


PILLARS_CPP = """
__device__ float3 along(float3 origin, float3 direction, float t) {
    return make_float3(origin.x + t * direction.x, origin.y + t * direction.y, origin.z + t * direction.z);
}
__device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ float repeat(float value, float period) { return value - period * floorf(value / period + 0.5f); }
__device__ float distance(float3 point, int& material) {
    float x = repeat(point.x, 4.0f), z = repeat(point.z, 4.0f);
    float pillar = fmaxf(hypotf(x, z) - 0.5f, fabsf(point.y) - 2.0f);
    float knob = sqrtf(x * x + (point.y - 1.5f) * (point.y - 1.5f) + z * z) - 0.9f;
    float ground = point.y + 2.0f;
    if (ground < pillar && ground < knob) {
        material = 0;
        return ground;
    }
    if (pillar < knob) {
        material = 1;
        return pillar;
    }
    material = 2;
    return knob;
}
extern "C" __global__ void peer(const float* camera, const float* light, const float* colors, float* image, int limit,
                                int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= height * width) return;
    int row = i / width, column = i % width;
    float3 origin = make_float3(camera[0], camera[1], camera[2]);
    float3 direction = make_float3(camera[3] + column * camera[6] / width - 0.5f * camera[6],
                                   camera[4] + 0.5f * camera[7] - row * camera[7] / height, camera[5]);
    float scale = 1.0f / sqrtf(dot(direction, direction));
    direction = make_float3(direction.x * scale, direction.y * scale, direction.z * scale);
    float t = 0.0f;
    int material, steps = 0, other;
    float d = distance(origin, material);
    while (d > 0.002f * t && t < 40.0f && steps < limit) {
        t += d;
        d = distance(along(origin, direction, t), material);
        ++steps;
    }
    float3 sun = make_float3(light[0], light[1], light[2]);
    float3 start = along(origin, direction, t - 0.01f);
    float visible = 1.0f, s = 0.05f;
    while (s < 8.0f && visible > 0.01f) {
        d = distance(along(start, sun, s), other);
        visible = fminf(visible, 8.0f * d / s);
        s += fmaxf(d, 0.05f);
    }
    float fog = expf(-0.05f * t);
    for (int channel = 0; channel < 3; ++channel)
        image[(row * width + column) * 3 + channel] =
            colors[material * 3 + channel] * fog * (0.2f + 0.8f * fmaxf(visible, 0.0f));
}
"""


def pillars_work(size: str) -> Work:
    height, width = sized(size, (1024, 1024), (27, 39), cpu=(144, 144))
    camera = np.array([1.7, 0.5, 0, 0.1, -0.1, 1, 1.2, 1.2], np.float32)
    light = np.array([0.48, 0.6, -0.64], np.float32)
    colors = np.array([[0.4, 0.6, 0.3], [0.8, 0.8, 0.9], [0.9, 0.3, 0.2]], np.float32)
    return Work(
        grid=(blocks(height * width, 128),),
        block=(128,),
        args=(camera, light, colors, np.empty((height, width, 3), np.float32), np.int32(200)),
        outputs=(3,),
        extents=(height, width),
        n_bytes=12 * height * width,
        flops=1500 * height * width,
    )


def pillars_reference(xp, args):
    camera, light, colors, image, limit = args
    height, width, _ = image.shape
    camera, light, colors = camera.astype(xp.float64), light.astype(xp.float64), colors.astype(xp.float64)
    row, column = xp.meshgrid(xp.arange(height), xp.arange(width), indexing="ij")

    def distance(point):
        x, z = (value - 4 * xp.floor(value / 4 + 0.5) for value in (point[0], point[2]))
        y = point[1]
        pillar = xp.maximum(xp.hypot(x, z) - 0.5, abs(y) - 2)
        knob = xp.sqrt(x * x + (y - 1.5) ** 2 + z * z) - 0.9
        ground = y + 2
        material = xp.where((ground < pillar) & (ground < knob), 0, xp.where(pillar < knob, 1, 2))
        return xp.minimum(ground, xp.minimum(pillar, knob)), material

    origin = camera[:3, None, None] + xp.zeros((3, height, width))
    direction = xp.stack(
        [
            camera[3] + column * camera[6] / width - 0.5 * camera[6],
            camera[4] + 0.5 * camera[7] - row * camera[7] / height,
            camera[5] + xp.zeros((height, width)),
        ]
    )
    direction /= xp.sqrt((direction**2).sum(axis=0))
    t = xp.zeros((height, width))
    d, material = distance(origin)
    for _ in range(int(limit)):
        active = (d > 0.002 * t) & (t < 40)
        t = xp.where(active, t + d, t)
        d, material = distance(origin + t * direction)
    start = origin + (t - 0.01) * direction
    visible, s = xp.ones((height, width)), xp.full((height, width), 0.05)
    for _ in range(160):
        active = (s < 8) & (visible > 0.01)
        d, _ = distance(start + s * light[:, None, None])
        visible = xp.where(active, xp.minimum(visible, 8 * d / s), visible)
        s = xp.where(active, s + xp.maximum(d, 0.05), s)
    shade = xp.exp(-0.05 * t) * (0.2 + 0.8 * xp.maximum(visible, 0))
    return (colors[material] * shade[:, :, None],)


def make_spheres(cuda):
    @cuda.jit(device=True)
    def intersect(ox, oy, oz, dx, dy, dz, cx, cy, cz, radius):
        lx = cx - ox
        ly = cy - oy
        lz = cz - oz
        b = lx * dx + ly * dy + lz * dz
        discriminant = b * b - (lx * lx + ly * ly + lz * lz) + radius * radius
        if discriminant < ZERO:
            return FAR
        root = math.sqrt(discriminant)
        near = b - root
        if near > np.float32(1e-3):
            return near
        far = b + root
        if far > np.float32(1e-3):
            return far
        return FAR

    @cuda.jit
    def trace_spheres(origins, directions, spheres, nearest, light):
        ray = cuda.grid(1)
        if ray >= origins.shape[0]:
            return
        ox, oy, oz = origins[ray, 0], origins[ray, 1], origins[ray, 2]
        dx, dy, dz = directions[ray, 0], directions[ray, 1], directions[ray, 2]
        best = FAR
        found = -1
        for k in range(spheres.shape[0]):
            t = intersect(ox, oy, oz, dx, dy, dz, spheres[k, 0], spheres[k, 1], spheres[k, 2], spheres[k, 3])
            if t < best:
                best = t
                found = k
        nearest[ray] = found
        if found < 0:
            light[ray] = ZERO
            return
        x = ox + best * dx
        y = oy + best * dy
        z = oz + best * dz
        nx = (x - spheres[found, 0]) / spheres[found, 3]
        ny = (y - spheres[found, 1]) / spheres[found, 3]
        nz = (z - spheres[found, 2]) / spheres[found, 3]
        light[ray] = abs(nx * dx + ny * dy + nz * dz)

    return trace_spheres


SPHERES_CPP = """
__device__ float intersect(float ox, float oy, float oz, float dx, float dy, float dz, float cx, float cy, float cz,
                           float radius) {
    float lx = cx - ox, ly = cy - oy, lz = cz - oz;
    float b = lx * dx + ly * dy + lz * dz;
    float discriminant = b * b - (lx * lx + ly * ly + lz * lz) + radius * radius;
    if (discriminant < 0.0f) return 1e30f;
    float root = sqrtf(discriminant);
    float near = b - root;
    if (near > 1e-3f) return near;
    float far = b + root;
    if (far > 1e-3f) return far;
    return 1e30f;
}
extern "C" __global__ void peer(const float* origins, const float* directions, const float* spheres, int* nearest,
                                float* light, int n, int n_spheres) {
    int ray = blockIdx.x * blockDim.x + threadIdx.x;
    if (ray >= n) return;
    float ox = origins[ray * 3], oy = origins[ray * 3 + 1], oz = origins[ray * 3 + 2];
    float dx = directions[ray * 3], dy = directions[ray * 3 + 1], dz = directions[ray * 3 + 2];
    float best = 1e30f;
    int found = -1;
    for (int k = 0; k < n_spheres; ++k) {
        float t = intersect(ox, oy, oz, dx, dy, dz, spheres[k * 4], spheres[k * 4 + 1], spheres[k * 4 + 2],
                            spheres[k * 4 + 3]);
        if (t < best) {
            best = t;
            found = k;
        }
    }
    nearest[ray] = found;
    if (found < 0) {
        light[ray] = 0.0f;
        return;
    }
    float x = ox + best * dx, y = oy + best * dy, z = oz + best * dz;
    float nx = (x - spheres[found * 4]) / spheres[found * 4 + 3];
    float ny = (y - spheres[found * 4 + 1]) / spheres[found * 4 + 3];
    float nz = (z - spheres[found * 4 + 2]) / spheres[found * 4 + 3];
    light[ray] = fabsf(nx * dx + ny * dy + nz * dz);
}
"""


def spheres_work(size: str) -> Work:
    n, n_spheres = sized(size, (1 << 19, 256), (700, 30), cpu=(1 << 17, 256))
    numbers = np.random.default_rng(110)
    directions = numbers.standard_normal((n, 3))
    directions /= np.sqrt((directions**2).sum(axis=1))[:, None]
    spheres = random(111, n_spheres, 4) * np.array([10, 10, 10, 0.5], np.float32)
    spheres[:, 3] += np.float32(0.2)
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(
            random(112, n, 3) * np.float32(10), directions.astype(np.float32), spheres,
            np.empty(n, np.int32), np.empty(n, np.float32),
        ),
        outputs=(3, 4),
        extents=(n, n_spheres),
        n_bytes=32 * n,
        flops=17 * n * n_spheres,
    )  # fmt: skip


def spheres_reference(xp, args):
    origins, directions, spheres, _, _ = (arg.astype(xp.float64) for arg in args)
    best = xp.full(len(origins), 1e30)
    found = xp.full(len(origins), -1)
    for k in range(len(spheres)):
        offset = spheres[k, :3] - origins
        b = (offset * directions).sum(axis=1)
        discriminant = b * b - (offset**2).sum(axis=1) + spheres[k, 3] ** 2
        root = xp.sqrt(xp.maximum(discriminant, 0))
        t = xp.where(b - root > 1e-3, b - root, xp.where(b + root > 1e-3, b + root, 1e30))
        t = xp.where(discriminant < 0, 1e30, t)
        found = xp.where(t < best, k, found)
        best = xp.minimum(best, t)
    normal = (origins + best[:, None] * directions - spheres[found, :3]) / spheres[found, 3:]
    light = abs((normal * directions).sum(axis=1))
    return found, xp.where(found < 0, 0, light)


class Approximate(Case):
    """A case whose error is the share of elements that differ by more than a small amount, for images with edges."""

    def error(self, xp, outputs, expected):
        return max(
            float((~(abs(out.astype(xp.float64) - values) <= 5e-3)).mean())
            for out, values in zip(outputs, expected, strict=True)
        )


CASES = (
    Approximate(
        "ray marching, solids with smooth unions",
        make_solids,
        "void(float32, float32, float32, float32[:, ::1])",
        SOLIDS_CPP,
        solids_work,
        solids_reference,
        tolerance=0.01,
        wider=True,
    ),
    Approximate(
        "ray marching, repeated pillars with shadows",
        make_pillars,
        "void(float32[::1], float32[::1], float32[:, ::1], float32[:, :, ::1], int32)",
        PILLARS_CPP,
        pillars_work,
        pillars_reference,
        tolerance=0.02,
        wider=True,
    ),
    Approximate(
        "rays against spheres, nearest hit",
        make_spheres,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], int32[::1], float32[::1])",
        SPHERES_CPP,
        spheres_work,
        spheres_reference,
        tolerance=2e-3,
    ),
)
