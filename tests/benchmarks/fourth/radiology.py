"""Medical imaging: the matrix Q of MRI gridding, and photons in layers of tissue by Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO, ONE, TWO, HALF = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)
TWO_PI = np.float32(2 * math.pi)
TILE = 256


def make_q(cuda):
    @cuda.jit
    def compute_q(samples, phi, x, y, z, q_real, q_imaginary):
        k_values = cuda.shared.array((TILE, 4), np.float32)
        i = cuda.grid(1)
        tid = cuda.threadIdx.x
        n = x.size
        n_samples = samples.shape[0]
        inside = i < n
        px = x[i] if inside else ZERO
        py = y[i] if inside else ZERO
        pz = z[i] if inside else ZERO
        real = ZERO
        imaginary = ZERO
        for start in range(0, n_samples, TILE):
            k = start + tid
            if k < n_samples:
                k_values[tid, 0] = samples[k, 0]
                k_values[tid, 1] = samples[k, 1]
                k_values[tid, 2] = samples[k, 2]
                k_values[tid, 3] = phi[k, 0] * phi[k, 0] + phi[k, 1] * phi[k, 1]
            cuda.syncthreads()
            for t in range(min(TILE, n_samples - start)):
                angle = TWO_PI * (k_values[t, 0] * px + k_values[t, 1] * py + k_values[t, 2] * pz)
                magnitude = k_values[t, 3]
                real += magnitude * math.cos(angle)
                imaginary += magnitude * math.sin(angle)
            cuda.syncthreads()
        if inside:
            q_real[i] = real
            q_imaginary[i] = imaginary

    return compute_q


Q_CPP = f"""
#define TILE {TILE}
#define TWO_PI 6.2831853071795864769f
extern "C" __global__ void peer(const float* samples, const float* phi, const float* x, const float* y,
                                const float* z, float* q_real, float* q_imaginary, int n, int n_samples) {{
    __shared__ float k_values[TILE][4];
    int i = blockIdx.x * blockDim.x + threadIdx.x, tid = threadIdx.x;
    bool inside = i < n;
    float px = inside ? x[i] : 0.0f, py = inside ? y[i] : 0.0f, pz = inside ? z[i] : 0.0f;
    float real = 0.0f, imaginary = 0.0f;
    for (int start = 0; start < n_samples; start += TILE) {{
        int k = start + tid;
        if (k < n_samples) {{
            k_values[tid][0] = samples[3 * k];
            k_values[tid][1] = samples[3 * k + 1];
            k_values[tid][2] = samples[3 * k + 2];
            k_values[tid][3] = phi[2 * k] * phi[2 * k] + phi[2 * k + 1] * phi[2 * k + 1];
        }}
        __syncthreads();
        int count = min(TILE, n_samples - start);
        for (int t = 0; t < count; ++t) {{
            float angle = TWO_PI * (k_values[t][0] * px + k_values[t][1] * py + k_values[t][2] * pz);
            float magnitude = k_values[t][3];
            real += magnitude * cosf(angle);
            imaginary += magnitude * sinf(angle);
        }}
        __syncthreads();
    }}
    if (inside) {{
        q_real[i] = real;
        q_imaginary[i] = imaginary;
    }}
}}
"""


def q_work(size: str) -> Work:
    n, n_samples = sized(size, (1 << 18, 1024), (600, 300), cpu=(1 << 12, 512))
    samples = (random(310, n_samples, 3) - HALF) * np.float32(16)
    voxels = random(311, 3, n) - HALF
    return Work(
        grid=(blocks(n, TILE),),
        block=(TILE,),
        args=(samples, random(312, n_samples, 2), *(each.copy() for each in voxels), np.empty(n, np.float32),
              np.empty(n, np.float32)),
        outputs=(5, 6),
        extents=(n, n_samples),
        n_bytes=20 * n + 20 * n_samples,
        flops=12 * n * n_samples,
    )  # fmt: skip


def q_reference(xp, args):
    samples, phi, x, y, z = (each.astype(xp.float64) for each in args[:5])
    voxels, magnitude = xp.stack([x, y, z]), (phi * phi).sum(axis=1)
    real, imaginary = xp.zeros(x.shape), xp.zeros(x.shape)
    for k in range(len(samples)):
        angle = 2 * math.pi * (samples[k] @ voxels)
        real += magnitude[k] * xp.cos(angle)
        imaginary += magnitude[k] * xp.sin(angle)
    return real, imaginary


SCALE = np.float32(2.0**-24)
TINY = np.float32(2.0**-25)
LEAST_WEIGHT = np.float32(1e-3)
CHANCE = np.float32(0.1)
ALMOST_ONE = np.float32(0.99999)
# Of each layer: the depth of its lower face in cm, its absorption and scattering per cm, and its anisotropy.
LAYERS = np.array([[0.1, 1.5, 60.0, 0.8], [0.3, 3.0, 90.0, 0.9], [0.8, 0.8, 40.0, 0.75]], np.float32)
RINGS, SLICES = 64, 80
RING_WIDTH, SLICE_HEIGHT = np.float32(0.0125), np.float32(0.01)


def make_photons(cuda):
    @cuda.jit(device=True)
    def next_state(state):
        state = np.uint32(state ^ (state << 13))
        state = np.uint32(state ^ (state >> 17))
        return np.uint32(state ^ (state << 5))

    @cuda.jit(device=True)
    def uniform(state):
        return np.float32(state >> 8) * SCALE + TINY

    @cuda.jit(device=True)
    def scattered(ux, uy, uz, g, r1, r2):
        ratio = (ONE - g * g) / (ONE - g + TWO * g * r1)
        cosine = (ONE + g * g - ratio * ratio) / (TWO * g)
        sine = math.sqrt(max(ONE - cosine * cosine, ZERO))
        azimuth = TWO_PI * r2
        cp = math.cos(azimuth)
        sp = math.sin(azimuth)
        if abs(uz) > ALMOST_ONE:
            return sine * cp, sine * sp, (cosine if uz > ZERO else -cosine)
        across = math.sqrt(ONE - uz * uz)
        vx = sine * (ux * uz * cp - uy * sp) / across + ux * cosine
        vy = sine * (uy * uz * cp + ux * sp) / across + uy * cosine
        vz = -sine * cp * across + uz * cosine
        return vx, vy, vz

    @cuda.jit
    def photons(seeds, layers, most_steps, absorbed, escaped):
        i = cuda.grid(1)
        if i >= seeds.size:
            return
        state = seeds[i]
        n_layers = layers.shape[0]
        x = ZERO
        y = ZERO
        z = ZERO
        ux = ZERO
        uy = ZERO
        uz = ONE
        weight = ONE
        layer = 0
        for _ in range(most_steps):
            top = layers[layer - 1, 0] if layer > 0 else ZERO
            bottom = layers[layer, 0]
            absorption = layers[layer, 1]
            total = absorption + layers[layer, 2]
            state = next_state(state)
            step = -math.log(uniform(state)) / total
            if z + step * uz >= bottom or z + step * uz < top:
                # The photon crosses a face: it continues in the next layer from there.
                face = bottom if uz > ZERO else top
                step = (face - z) / uz
                x += step * ux
                y += step * uy
                z = face
                layer = layer + 1 if uz > ZERO else layer - 1
                if layer < 0 or layer >= n_layers:
                    cuda.atomic.add(escaped, 0 if layer < 0 else 1, weight)
                    return
                continue
            x += step * ux
            y += step * uy
            z += step * uz
            lost = weight * absorption / total
            weight -= lost
            ring = min(int(math.sqrt(x * x + y * y) / RING_WIDTH), RINGS - 1)
            cut = min(int(z / SLICE_HEIGHT), SLICES - 1)
            cuda.atomic.add(absorbed, (cut, ring), lost)
            state = next_state(state)
            r1 = uniform(state)
            state = next_state(state)
            ux, uy, uz = scattered(ux, uy, uz, layers[layer, 3], r1, uniform(state))
            if weight < LEAST_WEIGHT:
                state = next_state(state)
                if uniform(state) > CHANCE:
                    return
                weight /= CHANCE

    return photons


PHOTONS_CPP = f"""
#define RINGS {RINGS}
#define SLICES {SLICES}
__device__ unsigned int next_state(unsigned int state) {{
    state ^= state << 13;
    state ^= state >> 17;
    return state ^ (state << 5);
}}

__device__ float uniform(unsigned int state) {{ return (state >> 8) * 0x1p-24f + 0x1p-25f; }}

__device__ void scatter(float& ux, float& uy, float& uz, float g, float r1, float r2) {{
    float ratio = (1.0f - g * g) / (1.0f - g + 2.0f * g * r1);
    float cosine = (1.0f + g * g - ratio * ratio) / (2.0f * g);
    float sine = sqrtf(fmaxf(1.0f - cosine * cosine, 0.0f));
    float azimuth = 6.2831853071795864769f * r2;
    float cp = cosf(azimuth), sp = sinf(azimuth);
    if (fabsf(uz) > 0.99999f) {{
        ux = sine * cp;
        uy = sine * sp;
        uz = uz > 0.0f ? cosine : -cosine;
        return;
    }}
    float across = sqrtf(1.0f - uz * uz);
    float vx = sine * (ux * uz * cp - uy * sp) / across + ux * cosine;
    float vy = sine * (uy * uz * cp + ux * sp) / across + uy * cosine;
    uz = -sine * cp * across + uz * cosine;
    ux = vx;
    uy = vy;
}}

extern "C" __global__ void peer(const unsigned int* seeds, const float* layers, int most_steps, float* absorbed,
                                float* escaped, int n, int n_layers) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int state = seeds[i];
    float x = 0.0f, y = 0.0f, z = 0.0f, ux = 0.0f, uy = 0.0f, uz = 1.0f, weight = 1.0f;
    int layer = 0;
    for (int k = 0; k < most_steps; ++k) {{
        float top = layer > 0 ? layers[4 * (layer - 1)] : 0.0f, bottom = layers[4 * layer];
        float absorption = layers[4 * layer + 1], total = absorption + layers[4 * layer + 2];
        state = next_state(state);
        float step = -logf(uniform(state)) / total;
        if (z + step * uz >= bottom || z + step * uz < top) {{
            float face = uz > 0.0f ? bottom : top;
            step = (face - z) / uz;
            x += step * ux;
            y += step * uy;
            z = face;
            layer = uz > 0.0f ? layer + 1 : layer - 1;
            if (layer < 0 || layer >= n_layers) {{
                atomicAdd(&escaped[layer < 0 ? 0 : 1], weight);
                return;
            }}
            continue;
        }}
        x += step * ux;
        y += step * uy;
        z += step * uz;
        float lost = weight * absorption / total;
        weight -= lost;
        int ring = min((int)(sqrtf(x * x + y * y) / {RING_WIDTH}f), RINGS - 1);
        int cut = min((int)(z / {SLICE_HEIGHT}f), SLICES - 1);
        atomicAdd(&absorbed[cut * RINGS + ring], lost);
        state = next_state(state);
        float r1 = uniform(state);
        state = next_state(state);
        scatter(ux, uy, uz, layers[4 * layer + 3], r1, uniform(state));
        if (weight < 1e-3f) {{
            state = next_state(state);
            if (uniform(state) > 0.1f) return;
            weight /= 0.1f;
        }}
    }}
}}
"""


def photons_work(size: str) -> Work:
    n, steps = sized(size, (1 << 18, 1000), (700, 300), cpu=(1 << 12, 1000))
    seeds = np.random.default_rng(313).integers(1, 1 << 32, n, dtype=np.uint32)
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(seeds, LAYERS, np.int32(steps), np.zeros((SLICES, RINGS), np.float32), np.zeros(2, np.float32)),
        outputs=(3, 4),
        extents=(n, len(LAYERS)),
        n_bytes=4 * n + 4 * SLICES * RINGS,
    )


def photons_reference(xp, args):
    seeds, layers, most_steps, absorbed, escaped = args
    state, layers = seeds.copy(), layers.astype(xp.float64)
    absorbed, escaped = xp.zeros(absorbed.size), xp.zeros(2)
    position, direction = xp.zeros((3, state.size)), xp.zeros((3, state.size))
    direction[2], weight, layer = 1.0, xp.ones(state.size), xp.zeros(state.size, xp.int64)

    def uniform(which):
        drawn = state[which]
        drawn ^= drawn << 13
        drawn ^= drawn >> 17
        drawn ^= drawn << 5
        state[which] = drawn
        return (drawn >> 8).astype(xp.float64) * 2.0**-24 + 2.0**-25

    for _ in range(int(most_steps)):
        bottom, absorption, scattering, g = layers[layer].T
        top = xp.where(layer > 0, layers[layer - 1, 0], 0)
        total = absorption + scattering
        step = -xp.log(uniform(slice(None))) / total
        end, uz = position[2] + step * direction[2], direction[2]
        crosses = (end >= bottom) | (end < top)
        face = xp.where(uz > 0, bottom, top)
        step = xp.where(crosses, (face - position[2]) / xp.where(crosses, uz, 1), step)
        position += step * direction
        position[2] = xp.where(crosses, face, position[2])
        layer = layer + xp.where(crosses, xp.where(uz > 0, 1, -1), 0)
        above, below = layer < 0, layer >= len(layers)
        escaped += xp.stack([weight[above].sum(), weight[below].sum()])
        inside = ~crosses
        lost = xp.where(inside, weight * absorption / total, 0)
        weight = weight - lost
        ring = xp.minimum(xp.hypot(position[0], position[1]) / float(RING_WIDTH), RINGS - 1).astype(xp.int64)
        cut = xp.clip(position[2] / float(SLICE_HEIGHT), 0, SLICES - 1).astype(xp.int64)
        absorbed += xp.bincount(cut * RINGS + ring, weights=lost, minlength=absorbed.size)
        which = xp.flatnonzero(inside)
        ux, uy, uz = direction[:, which]
        g, r1 = g[which], uniform(which)
        azimuth = 2 * math.pi * uniform(which)
        cosine = (1 + g * g - ((1 - g * g) / (1 - g + 2 * g * r1)) ** 2) / (2 * g)
        sine, cp, sp = xp.sqrt(xp.maximum(1 - cosine * cosine, 0)), xp.cos(azimuth), xp.sin(azimuth)
        straight = xp.abs(uz) > 0.99999
        across = xp.where(straight, 1, xp.sqrt(xp.maximum(1 - uz * uz, 0)))
        tilted = (
            sine * (ux * uz * cp - uy * sp) / across + ux * cosine,
            sine * (uy * uz * cp + ux * sp) / across + uy * cosine,
            -sine * cp * across + uz * cosine,
        )
        upright = sine * cp, sine * sp, xp.where(uz > 0, cosine, -cosine)
        direction[:, which] = xp.where(straight, xp.stack(upright), xp.stack(tilted))
        weak = xp.flatnonzero(inside & (weight < 1e-3))
        lucky = uniform(weak) <= 0.1
        weight[weak] = xp.where(lucky, weight[weak] / 0.1, 0)
        alive = xp.flatnonzero(~above & ~below & (weight > 0))
        if alive.size == 0:
            break
        position, direction = position[:, alive], direction[:, alive]
        state, weight, layer = state[alive], weight[alive], layer[alive]
    return absorbed.reshape(SLICES, RINGS), escaped


CASES = (
    Case(
        "MRI gridding, Q",
        make_q,
        "void(float32[:, ::1], float32[:, ::1], float32[::1], float32[::1], float32[::1], float32[::1], float32[::1])",
        Q_CPP,
        q_work,
        q_reference,
        tolerance=1e-4,
    ),
    Case(
        "photons in layers of tissue",
        make_photons,
        "void(uint32[::1], float32[:, ::1], int32, float32[:, ::1], float32[::1])",
        PHOTONS_CPP,
        photons_work,
        photons_reference,
        # A photon near a face, or near the border of a ring, may be on the other side of it in float64.
        tolerance=2e-2,
        accumulates=True,
    ),
)
