"""Kalman filters with a state of four, a thread a track, with small matrices in local arrays."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)
STATE = 4
# The state is a position and a velocity in the plane; accelerations are the noise of the process.
MOTION = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
PROCESS_NOISE = np.float32(0.01) * np.array(
    [[0.25, 0, 0.5, 0], [0, 0.25, 0, 0.5], [0.5, 0, 1, 0], [0, 0.5, 0, 1]], np.float32
)


def make_kalman(cuda):
    @cuda.jit(device=True)
    def multiply(a, b, out):
        for i in range(STATE):
            for j in range(STATE):
                total = ZERO
                for k in range(STATE):
                    total += a[i, k] * b[k, j]
                out[i, j] = total

    @cuda.jit(device=True)
    def multiply_transposed(a, b, out):
        for i in range(STATE):
            for j in range(STATE):
                total = ZERO
                for k in range(STATE):
                    total += a[i, k] * b[j, k]
                out[i, j] = total

    @cuda.jit
    def kalman(measured, motion, process_noise, noise, filtered, covariance):
        track = cuda.grid(1)
        steps, _, tracks = measured.shape
        if track < tracks:
            x = cuda.local.array(STATE, np.float32)
            moved = cuda.local.array(STATE, np.float32)
            p = cuda.local.array((STATE, STATE), np.float32)
            f = cuda.local.array((STATE, STATE), np.float32)
            work = cuda.local.array((STATE, STATE), np.float32)
            for i in range(STATE):
                x[i] = ZERO
                for j in range(STATE):
                    p[i, j] = ONE if i == j else ZERO
                    f[i, j] = motion[i, j]
            for step in range(steps):
                for i in range(STATE):
                    total = ZERO
                    for j in range(STATE):
                        total += f[i, j] * x[j]
                    moved[i] = total
                multiply(f, p, work)
                multiply_transposed(work, f, p)
                for i in range(STATE):
                    x[i] = moved[i]
                    for j in range(STATE):
                        p[i, j] += process_noise[i, j]
                z0 = measured[step, 0, track]
                z1 = measured[step, 1, track]
                if not math.isnan(z0):
                    s00 = p[0, 0] + noise
                    s01 = p[0, 1]
                    s11 = p[1, 1] + noise
                    scale = ONE / (s00 * s11 - s01 * s01)
                    r0 = z0 - x[0]
                    r1 = z1 - x[1]
                    for i in range(STATE):
                        k0 = (p[i, 0] * s11 - p[i, 1] * s01) * scale
                        k1 = (p[i, 1] * s00 - p[i, 0] * s01) * scale
                        x[i] += k0 * r0 + k1 * r1
                        for j in range(STATE):
                            work[i, j] = p[i, j] - k0 * p[0, j] - k1 * p[1, j]
                    for i in range(STATE):
                        for j in range(STATE):
                            p[i, j] = work[i, j]
                filtered[step, 0, track] = x[0]
                filtered[step, 1, track] = x[1]
            for i in range(STATE):
                for j in range(STATE):
                    covariance[i, j, track] = p[i, j]

    return kalman


KALMAN_CPP = f"""
#define STATE {STATE}
__device__ void multiply(const float a[STATE][STATE], const float b[STATE][STATE], float out[STATE][STATE]) {{
    for (int i = 0; i < STATE; ++i)
        for (int j = 0; j < STATE; ++j) {{
            float total = 0.0f;
            for (int k = 0; k < STATE; ++k) total += a[i][k] * b[k][j];
            out[i][j] = total;
        }}
}}

__device__ void multiply_transposed(const float a[STATE][STATE], const float b[STATE][STATE],
                                    float out[STATE][STATE]) {{
    for (int i = 0; i < STATE; ++i)
        for (int j = 0; j < STATE; ++j) {{
            float total = 0.0f;
            for (int k = 0; k < STATE; ++k) total += a[i][k] * b[j][k];
            out[i][j] = total;
        }}
}}

extern "C" __global__ void peer(const float* measured, const float* motion, const float* process_noise, float noise,
                                float* filtered, float* covariance, int steps, int tracks) {{
    int track = blockIdx.x * blockDim.x + threadIdx.x;
    if (track < tracks) {{
        float x[STATE], moved[STATE], p[STATE][STATE], f[STATE][STATE], work[STATE][STATE];
        for (int i = 0; i < STATE; ++i) {{
            x[i] = 0.0f;
            for (int j = 0; j < STATE; ++j) {{
                p[i][j] = i == j ? 1.0f : 0.0f;
                f[i][j] = motion[i * STATE + j];
            }}
        }}
        for (int step = 0; step < steps; ++step) {{
            for (int i = 0; i < STATE; ++i) {{
                float total = 0.0f;
                for (int j = 0; j < STATE; ++j) total += f[i][j] * x[j];
                moved[i] = total;
            }}
            multiply(f, p, work);
            multiply_transposed(work, f, p);
            for (int i = 0; i < STATE; ++i) {{
                x[i] = moved[i];
                for (int j = 0; j < STATE; ++j) p[i][j] += process_noise[i * STATE + j];
            }}
            float z0 = measured[2 * step * tracks + track], z1 = measured[(2 * step + 1) * tracks + track];
            if (!isnan(z0)) {{
                float s00 = p[0][0] + noise, s01 = p[0][1], s11 = p[1][1] + noise;
                float scale = 1.0f / (s00 * s11 - s01 * s01);
                float r0 = z0 - x[0], r1 = z1 - x[1];
                for (int i = 0; i < STATE; ++i) {{
                    float k0 = (p[i][0] * s11 - p[i][1] * s01) * scale;
                    float k1 = (p[i][1] * s00 - p[i][0] * s01) * scale;
                    x[i] += k0 * r0 + k1 * r1;
                    for (int j = 0; j < STATE; ++j) work[i][j] = p[i][j] - k0 * p[0][j] - k1 * p[1][j];
                }}
                for (int i = 0; i < STATE; ++i)
                    for (int j = 0; j < STATE; ++j) p[i][j] = work[i][j];
            }}
            filtered[2 * step * tracks + track] = x[0];
            filtered[(2 * step + 1) * tracks + track] = x[1];
        }}
        for (int i = 0; i < STATE; ++i)
            for (int j = 0; j < STATE; ++j) covariance[(i * STATE + j) * tracks + track] = p[i][j];
    }}
}}
"""


def kalman_work(size: str) -> Work:
    steps, tracks = sized(size, (64, 1 << 17), (9, 300), cpu=(32, 1 << 15))
    numbers = np.random.default_rng(453)
    velocity = random(454, 2, tracks) - np.float32(0.5)
    measured = np.arange(1, steps + 1, dtype=np.float32)[:, None, None] * velocity
    measured += numbers.normal(0, 0.3, measured.shape).astype(np.float32)
    hidden = numbers.random((steps, tracks)) < 0.1  # measurements that are missing
    measured[np.broadcast_to(hidden[:, None], measured.shape)] = np.nan
    return Work(
        grid=(blocks(tracks, 128),),
        block=(128,),
        args=(
            measured, MOTION, PROCESS_NOISE, np.float32(0.09), np.empty((steps, 2, tracks), np.float32),
            np.empty((STATE, STATE, tracks), np.float32),
        ),
        outputs=(4, 5),
        extents=(steps, tracks),
        n_bytes=4 * tracks * (4 * steps + STATE * STATE),
        flops=400 * steps * tracks,
    )  # fmt: skip


def product(a, b):
    """The matrix products of stacks of small matrices; the last axis is that of the stack."""
    return (a[:, :, None] * b[None]).sum(axis=1)


def kalman_reference(xp, args):
    measured, motion, process_noise = (each.astype(xp.float64) for each in args[:3])
    noise, tracks = float(args[3]), measured.shape[2]
    motion, process_noise = motion[:, :, None], process_noise[:, :, None]
    x, p = xp.zeros((STATE, 1, tracks)), xp.zeros((STATE, STATE, tracks)) + xp.eye(STATE)[:, :, None]
    filtered = xp.empty(measured.shape)
    for step, z in enumerate(measured):
        x = product(motion, x)
        p = product(product(motion, p), motion.transpose(1, 0, 2)) + process_noise
        known = ~xp.isnan(z[0])
        s00, s01, s11 = p[0, 0] + noise, p[0, 1], p[1, 1] + noise
        inverse = xp.stack([xp.stack([s11, -s01]), xp.stack([-s01, s00])]) / (s00 * s11 - s01**2)
        gain = xp.where(known, product(p[:, :2], inverse), 0)
        x = x + product(gain, xp.where(known, z[:, None] - x[:2], 0))
        p = p - product(gain, p[:2])
        filtered[step] = x[:2, 0]
    return filtered, p


CASES = (
    Case(
        "Kalman filter, a thread a track",
        make_kalman,
        "void(float32[:, :, ::1], float32[:, ::1], float32[:, ::1], float32, float32[:, :, ::1], float32[:, :, ::1])",
        KALMAN_CPP,
        kalman_work,
        kalman_reference,
        tolerance=1e-4,
    ),
)
