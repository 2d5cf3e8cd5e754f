"""Small symmetric matrices, one per thread in local arrays: eigenvalues by Jacobi's rotations, least squares by QR."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO, ONE, TWO = np.float32(0), np.float32(1), np.float32(2)
ORDER = 5
SWEEPS = 10
SMALL = np.float32(1e-12)


def make_jacobi(cuda):
    @cuda.jit(device=True)
    def rotate(a, p, q):
        if a[p, q] == ZERO:
            return
        theta = (a[q, q] - a[p, p]) / (TWO * a[p, q])
        t = ONE / (abs(theta) + math.sqrt(theta * theta + ONE))
        if theta < ZERO:
            t = -t
        c = ONE / math.sqrt(t * t + ONE)
        s = t * c
        for k in range(ORDER):
            akp = a[k, p]
            akq = a[k, q]
            a[k, p] = c * akp - s * akq
            a[k, q] = s * akp + c * akq
        for k in range(ORDER):
            apk = a[p, k]
            aqk = a[q, k]
            a[p, k] = c * apk - s * aqk
            a[q, k] = s * apk + c * aqk

    @cuda.jit
    def eigenvalues(matrices, out):
        i = cuda.grid(1)
        if i >= out.shape[1]:
            return
        a = cuda.local.array((ORDER, ORDER), np.float32)
        element = 0
        for p in range(ORDER):
            for q in range(p, ORDER):
                a[p, q] = matrices[element, i]
                a[q, p] = a[p, q]
                element += 1
        for _ in range(SWEEPS):
            outside = ZERO
            diagonal = ZERO
            for p in range(ORDER):
                diagonal += a[p, p] * a[p, p]
                for q in range(p + 1, ORDER):
                    outside += a[p, q] * a[p, q]
            if outside <= SMALL * diagonal:
                break
            for p in range(ORDER - 1):
                for q in range(p + 1, ORDER):
                    rotate(a, p, q)
        # Insertion sort of the diagonal
        for p in range(1, ORDER):
            value = a[p, p]
            k = p - 1
            while k >= 0 and a[k, k] > value:
                a[k + 1, k + 1] = a[k, k]
                k -= 1
            a[k + 1, k + 1] = value
        for p in range(ORDER):
            out[p, i] = a[p, p]

    return eigenvalues


JACOBI_CPP = f"""
#define ORDER {ORDER}
#define SWEEPS {SWEEPS}
__device__ void rotate(float a[ORDER][ORDER], int p, int q) {{
    if (a[p][q] == 0.0f) return;
    float theta = (a[q][q] - a[p][p]) / (2.0f * a[p][q]);
    float t = 1.0f / (fabsf(theta) + sqrtf(theta * theta + 1.0f));
    if (theta < 0.0f) t = -t;
    float c = 1.0f / sqrtf(t * t + 1.0f), s = t * c;
    for (int k = 0; k < ORDER; ++k) {{
        float akp = a[k][p], akq = a[k][q];
        a[k][p] = c * akp - s * akq;
        a[k][q] = s * akp + c * akq;
    }}
    for (int k = 0; k < ORDER; ++k) {{
        float apk = a[p][k], aqk = a[q][k];
        a[p][k] = c * apk - s * aqk;
        a[q][k] = s * apk + c * aqk;
    }}
}}

extern "C" __global__ void peer(const float* matrices, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a[ORDER][ORDER];
    int element = 0;
    for (int p = 0; p < ORDER; ++p)
        for (int q = p; q < ORDER; ++q) {{
            a[p][q] = matrices[element * n + i];
            a[q][p] = a[p][q];
            ++element;
        }}
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {{
        float outside = 0.0f, diagonal = 0.0f;
        for (int p = 0; p < ORDER; ++p) {{
            diagonal += a[p][p] * a[p][p];
            for (int q = p + 1; q < ORDER; ++q) outside += a[p][q] * a[p][q];
        }}
        if (outside <= 1e-12f * diagonal) break;
        for (int p = 0; p < ORDER - 1; ++p)
            for (int q = p + 1; q < ORDER; ++q) rotate(a, p, q);
    }}
    for (int p = 1; p < ORDER; ++p) {{
        float value = a[p][p];
        int k = p - 1;
        while (k >= 0 && a[k][k] > value) {{
            a[k + 1][k + 1] = a[k][k];
            --k;
        }}
        a[k + 1][k + 1] = value;
    }}
    for (int p = 0; p < ORDER; ++p) out[p * n + i] = a[p][p];
}}
"""


def jacobi_work(size: str) -> Work:
    n = sized(size, 1 << 19, 300, cpu=1 << 17)
    elements = ORDER * (ORDER + 1) // 2
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(random(350, elements, n) - np.float32(0.5), np.empty((ORDER, n), np.float32)),
        outputs=(1,),
        extents=(n,),
        n_bytes=4 * n * (elements + ORDER),
        flops=5 * n * 10 * (12 * ORDER + 12),
    )


def jacobi_reference(xp, args):
    elements = args[0].astype(xp.float64)
    matrices = xp.zeros((elements.shape[1], ORDER, ORDER))
    rows, columns = np.triu_indices(ORDER)
    for element, (p, q) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        matrices[:, p, q] = matrices[:, q, p] = elements[element]
    return (xp.linalg.eigvalsh(matrices).T,)


SAMPLES, TERMS = 8, 3


def make_fit(cuda):
    @cuda.jit
    def fit(times, values, coefficients, residuals):
        i = cuda.grid(1)
        if i >= residuals.size:
            return
        a = cuda.local.array((SAMPLES, TERMS + 1), np.float32)
        for r in range(SAMPLES):
            t = times[r, i]
            a[r, 0] = ONE
            a[r, 1] = t
            a[r, 2] = t * t
            a[r, TERMS] = values[r, i]
        # Householder's reflections, which also transform the right-hand side in the last column
        for c in range(TERMS):
            squares = ZERO
            for r in range(c, SAMPLES):
                squares += a[r, c] * a[r, c]
            length = math.sqrt(squares)
            alpha = -length if a[c, c] > ZERO else length
            head = a[c, c] - alpha
            a[c, c] = alpha
            scale = ONE / (-alpha * head)
            for k in range(c + 1, TERMS + 1):
                product = head * a[c, k]
                for r in range(c + 1, SAMPLES):
                    product += a[r, c] * a[r, k]
                product *= scale
                a[c, k] -= product * head
                for r in range(c + 1, SAMPLES):
                    a[r, k] -= product * a[r, c]
        for c in range(TERMS - 1, -1, -1):
            value = a[c, TERMS]
            for k in range(c + 1, TERMS):
                value -= a[c, k] * coefficients[k, i]
            coefficients[c, i] = value / a[c, c]
        rest = ZERO
        for r in range(TERMS, SAMPLES):
            rest += a[r, TERMS] * a[r, TERMS]
        residuals[i] = math.sqrt(rest)

    return fit


FIT_CPP = f"""
#define SAMPLES {SAMPLES}
#define TERMS {TERMS}
extern "C" __global__ void peer(const float* times, const float* values, float* coefficients, float* residuals,
                                int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a[SAMPLES][TERMS + 1];
    for (int r = 0; r < SAMPLES; ++r) {{
        float t = times[r * n + i];
        a[r][0] = 1.0f;
        a[r][1] = t;
        a[r][2] = t * t;
        a[r][TERMS] = values[r * n + i];
    }}
    for (int c = 0; c < TERMS; ++c) {{
        float squares = 0.0f;
        for (int r = c; r < SAMPLES; ++r) squares += a[r][c] * a[r][c];
        float length = sqrtf(squares);
        float alpha = a[c][c] > 0.0f ? -length : length;
        float head = a[c][c] - alpha;
        a[c][c] = alpha;
        float scale = 1.0f / (-alpha * head);
        for (int k = c + 1; k < TERMS + 1; ++k) {{
            float product = head * a[c][k];
            for (int r = c + 1; r < SAMPLES; ++r) product += a[r][c] * a[r][k];
            product *= scale;
            a[c][k] -= product * head;
            for (int r = c + 1; r < SAMPLES; ++r) a[r][k] -= product * a[r][c];
        }}
    }}
    for (int c = TERMS - 1; c >= 0; --c) {{
        float value = a[c][TERMS];
        for (int k = c + 1; k < TERMS; ++k) value -= a[c][k] * coefficients[k * n + i];
        coefficients[c * n + i] = value / a[c][c];
    }}
    float rest = 0.0f;
    for (int r = TERMS; r < SAMPLES; ++r) rest += a[r][TERMS] * a[r][TERMS];
    residuals[i] = sqrtf(rest);
}}
"""


def fit_work(size: str) -> Work:
    n = sized(size, 1 << 20, 300)
    times = (np.arange(SAMPLES)[:, None] - SAMPLES / 2 + random(351, SAMPLES, n) / 2).astype(np.float32)
    values = np.float32(0.5) * times - np.float32(0.2) * times * times + random(352, SAMPLES, n)
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(times, values, np.empty((TERMS, n), np.float32), np.empty(n, np.float32)),
        outputs=(2, 3),
        extents=(n,),
        n_bytes=4 * n * (2 * SAMPLES + TERMS + 1),
        flops=200 * n,
    )


def fit_reference(xp, args):
    times, values = (each.T.astype(xp.float64) for each in args[:2])
    a = xp.stack([times**0, times, times**2], axis=2)
    coefficients = xp.linalg.solve(a.transpose(0, 2, 1) @ a, a.transpose(0, 2, 1) @ values[..., None])
    rest = values - (a @ coefficients)[..., 0]
    return coefficients[..., 0].T, xp.sqrt((rest * rest).sum(axis=1))


CASES = (
    Case(
        "eigenvalues by Jacobi's rotations",
        make_jacobi,
        "void(float32[:, ::1], float32[:, ::1])",
        JACOBI_CPP,
        jacobi_work,
        jacobi_reference,
        tolerance=1e-5,
    ),
    Case(
        "least squares by QR",
        make_fit,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[::1])",
        FIT_CPP,
        fit_work,
        fit_reference,
        tolerance=1e-5,
    ),
)
