"""Sums of sines and cosines over atoms, and tridiagonal systems by parallel cyclic reduction."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
TWO_PI = np.float32(2 * math.pi)
MOST = 256


def make_structure_factor(cuda):
    @cuda.jit
    def structure_factor(reflections, positions, factors, amplitude, phase):
        r = cuda.grid(1)
        if r < reflections.shape[0]:
            h = np.float32(reflections[r, 0])
            k = np.float32(reflections[r, 1])
            l = np.float32(reflections[r, 2])  # noqa: E741
            real = ZERO
            imaginary = ZERO
            for atom in range(positions.shape[0]):
                angle = TWO_PI * (h * positions[atom, 0] + k * positions[atom, 1] + l * positions[atom, 2])
                real += factors[atom] * math.cos(angle)
                imaginary += factors[atom] * math.sin(angle)
            amplitude[r] = math.sqrt(real * real + imaginary * imaginary)
            phase[r, 0] = real
            phase[r, 1] = imaginary

    return structure_factor


STRUCTURE_FACTOR_CPP = f"""
extern "C" __global__ void peer(const int* reflections, const float* positions, const float* factors, float* amplitude,
                                float* phase, int n, int n_atoms) {{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n) {{
        float h = reflections[r * 3], k = reflections[r * 3 + 1], l = reflections[r * 3 + 2];
        float real = 0.0f, imaginary = 0.0f;
        for (int atom = 0; atom < n_atoms; ++atom) {{
            float angle = {float(TWO_PI).hex()}f *
                (h * positions[atom * 3] + k * positions[atom * 3 + 1] + l * positions[atom * 3 + 2]);
            real += factors[atom] * cosf(angle);
            imaginary += factors[atom] * sinf(angle);
        }}
        amplitude[r] = sqrtf(real * real + imaginary * imaginary);
        phase[r * 2] = real;
        phase[r * 2 + 1] = imaginary;
    }}
}}
"""


def structure_factor_work(size: str) -> Work:
    n, n_atoms = sized(size, (1 << 17, 512), (150, 60), cpu=(1 << 13, 128))
    reflections = np.random.default_rng(190).integers(-20, 21, (n, 3), dtype=np.int32)
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(
            reflections, random(191, n_atoms, 3), random(192, n_atoms) * np.float32(8),
            np.empty(n, np.float32), np.empty((n, 2), np.float32),
        ),
        outputs=(3, 4),
        extents=(n, n_atoms),
        n_bytes=24 * n + 16 * n_atoms,
        flops=40 * n * n_atoms,
    )  # fmt: skip


def structure_factor_reference(xp, args):
    reflections, positions, factors, _, _ = args
    positions, factors = positions.astype(xp.float64), factors.astype(xp.float64)
    real, imaginary = [], []
    for start in range(0, len(reflections), 1 << 14):
        angles = 2 * math.pi * (reflections[start : start + (1 << 14)].astype(xp.float64) @ positions.T)
        real.append(xp.cos(angles) @ factors)
        imaginary.append(xp.sin(angles) @ factors)
    real, imaginary = xp.concatenate(real), xp.concatenate(imaginary)
    return xp.hypot(real, imaginary), xp.stack([real, imaginary], axis=1)


def make_cyclic_reduction(cuda):
    @cuda.jit
    def cyclic_reduction(lower, diagonal, upper, right, x):
        a = cuda.shared.array(MOST, np.float32)
        b = cuda.shared.array(MOST, np.float32)
        c = cuda.shared.array(MOST, np.float32)
        d = cuda.shared.array(MOST, np.float32)
        i = cuda.threadIdx.x
        system = cuda.blockIdx.x
        n = diagonal.shape[1]
        a[i] = lower[system, i]
        b[i] = diagonal[system, i]
        c[i] = upper[system, i]
        d[i] = right[system, i]
        cuda.syncthreads()
        stride = 1
        while stride < n:
            new_a = ZERO
            new_b = b[i]
            new_c = ZERO
            new_d = d[i]
            if i >= stride:
                k = -a[i] / b[i - stride]
                new_a = k * a[i - stride]
                new_b += k * c[i - stride]
                new_d += k * d[i - stride]
            if i + stride < n:
                k = -c[i] / b[i + stride]
                new_c = k * c[i + stride]
                new_b += k * a[i + stride]
                new_d += k * d[i + stride]
            cuda.syncthreads()
            a[i] = new_a
            b[i] = new_b
            c[i] = new_c
            d[i] = new_d
            cuda.syncthreads()
            stride *= 2
        x[system, i] = d[i] / b[i]

    return cyclic_reduction


CYCLIC_REDUCTION_CPP = f"""
#define MOST {MOST}
extern "C" __global__ void peer(const float* lower, const float* diagonal, const float* upper, const float* right,
                                float* x, int n) {{
    __shared__ float a[MOST], b[MOST], c[MOST], d[MOST];
    int i = threadIdx.x, system = blockIdx.x;
    a[i] = lower[system * n + i];
    b[i] = diagonal[system * n + i];
    c[i] = upper[system * n + i];
    d[i] = right[system * n + i];
    __syncthreads();
    for (int stride = 1; stride < n; stride *= 2) {{
        float new_a = 0.0f, new_b = b[i], new_c = 0.0f, new_d = d[i];
        if (i >= stride) {{
            float k = -a[i] / b[i - stride];
            new_a = k * a[i - stride];
            new_b += k * c[i - stride];
            new_d += k * d[i - stride];
        }}
        if (i + stride < n) {{
            float k = -c[i] / b[i + stride];
            new_c = k * c[i + stride];
            new_b += k * a[i + stride];
            new_d += k * d[i + stride];
        }}
        __syncthreads();
        a[i] = new_a;
        b[i] = new_b;
        c[i] = new_c;
        d[i] = new_d;
        __syncthreads();
    }}
    x[system * n + i] = d[i] / b[i];
}}
"""


def cyclic_reduction_work(size: str) -> Work:
    systems, n = sized(size, (1 << 15, MOST), (3, 75), cpu=(1 << 13, MOST))
    lower, upper = random(193, systems, n), random(194, systems, n)
    lower[:, 0] = upper[:, -1] = 0
    return Work(
        grid=(systems,),
        block=(n,),
        args=(
            lower, random(195, systems, n) + np.float32(2), upper, random(196, systems, n),
            np.empty((systems, n), np.float32),
        ),
        outputs=(4,),
        extents=(n,),
        n_bytes=20 * systems * n,
        flops=13 * systems * n * math.ceil(math.log2(n)),
    )  # fmt: skip


def cyclic_reduction_reference(xp, args):
    lower, diagonal, upper, right = (arg.astype(xp.float64) for arg in args[:4])
    # Thomas' algorithm, for all systems at once
    for i in range(1, diagonal.shape[1]):
        factor = lower[:, i] / diagonal[:, i - 1]
        diagonal[:, i] -= factor * upper[:, i - 1]
        right[:, i] -= factor * right[:, i - 1]
    x = right / diagonal
    for i in range(diagonal.shape[1] - 2, -1, -1):
        x[:, i] = (right[:, i] - upper[:, i] * x[:, i + 1]) / diagonal[:, i]
    return (x,)


CASES = (
    Case(
        "structure factors of a crystal",
        make_structure_factor,
        "void(int32[:, ::1], float32[:, ::1], float32[::1], float32[::1], float32[:, ::1])",
        STRUCTURE_FACTOR_CPP,
        structure_factor_work,
        structure_factor_reference,
        tolerance=1e-4,
    ),
    Case(
        "parallel cyclic reduction in a block",
        make_cyclic_reduction,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1])",
        CYCLIC_REDUCTION_CPP,
        cyclic_reduction_work,
        cyclic_reduction_reference,
    ),
)
