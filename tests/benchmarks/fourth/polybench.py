"""Linear algebra and solvers of PolyBench: a transposed matrix by a vector, Gram-Schmidt, and ADI in float64."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)
ONE = np.float32(1)
CHUNK = 64
LENGTH, VECTORS = 64, 16


def make_bicg(cuda):
    @cuda.jit
    def bicg_transposed(a, r, s):
        part = cuda.shared.array(CHUNK, np.float32)
        rows, columns = a.shape
        tx = cuda.threadIdx.x
        j = cuda.grid(1)
        first = cuda.blockIdx.y * CHUNK
        count = min(CHUNK, rows - first)
        if tx < count:
            part[tx] = r[first + tx]
        cuda.syncthreads()
        if j < columns:
            total = ZERO
            for i in range(count):
                total += a[first + i, j] * part[i]
            cuda.atomic.add(s, j, total)

    return bicg_transposed


BICG_CPP = f"""
#define CHUNK {CHUNK}
extern "C" __global__ void peer(const float* a, const float* r, float* s, int rows, int columns) {{
    __shared__ float part[CHUNK];
    int tx = threadIdx.x, j = blockIdx.x * blockDim.x + tx, first = blockIdx.y * CHUNK;
    int count = min(CHUNK, rows - first);
    if (tx < count) part[tx] = r[first + tx];
    __syncthreads();
    if (j < columns) {{
        float total = 0.0f;
        for (int i = 0; i < count; ++i) total += a[(first + i) * columns + j] * part[i];
        atomicAdd(&s[j], total);
    }}
}}
"""


def bicg_work(size: str) -> Work:
    rows, columns = sized(size, (8192, 8192), (150, 300), cpu=(8192, 4096))
    return Work(
        grid=(blocks(columns, 256), blocks(rows, CHUNK)),
        block=(256,),
        args=(random(400, rows, columns), random(401, rows), np.zeros(columns, np.float32)),
        outputs=(2,),
        extents=(rows, columns),
        n_bytes=4 * (rows * columns + rows + columns),
        flops=2 * rows * columns,
    )


def make_gram_schmidt(cuda):
    @cuda.jit(device=True)
    def warp_sum(value):
        offset = 16
        while offset > 0:
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
            offset //= 2
        return value

    @cuda.jit
    def gram_schmidt(matrices, q, r):
        a = cuda.shared.array((VECTORS, LENGTH), np.float32)
        scale = cuda.shared.array(1, np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        tid = ty * 32 + tx
        m = cuda.blockIdx.x
        for i in range(tid, LENGTH * VECTORS, 256):
            a[i % VECTORS, i // VECTORS] = matrices[m, i // VECTORS, i % VECTORS]
        for i in range(tid, VECTORS * VECTORS, 256):
            r[m, i // VECTORS, i % VECTORS] = ZERO
        cuda.syncthreads()
        for k in range(VECTORS):
            if ty == 0:
                squares = ZERO
                for i in range(tx, LENGTH, 32):
                    squares += a[k, i] * a[k, i]
                norm = math.sqrt(warp_sum(squares))
                if tx == 0:
                    r[m, k, k] = norm
                    scale[0] = ONE / norm
            cuda.syncthreads()
            for i in range(tid, LENGTH, 256):
                a[k, i] *= scale[0]
            cuda.syncthreads()
            for j in range(k + 1 + ty, VECTORS, 8):
                dot = ZERO
                for i in range(tx, LENGTH, 32):
                    dot += a[k, i] * a[j, i]
                dot = warp_sum(dot)
                for i in range(tx, LENGTH, 32):
                    a[j, i] -= dot * a[k, i]
                if tx == 0:
                    r[m, k, j] = dot
            cuda.syncthreads()
        for i in range(tid, LENGTH * VECTORS, 256):
            q[m, i // VECTORS, i % VECTORS] = a[i % VECTORS, i // VECTORS]

    return gram_schmidt


GRAM_SCHMIDT_CPP = f"""
#define LENGTH {LENGTH}
#define VECTORS {VECTORS}
__device__ float warp_sum(float value) {{
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}}

extern "C" __global__ void peer(const float* matrices, float* q, float* r) {{
    __shared__ float a[VECTORS][LENGTH], scale;
    int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 32 + tx, m = blockIdx.x;
    for (int i = tid; i < LENGTH * VECTORS; i += 256) a[i % VECTORS][i / VECTORS] = matrices[m * LENGTH * VECTORS + i];
    for (int i = tid; i < VECTORS * VECTORS; i += 256) r[m * VECTORS * VECTORS + i] = 0.0f;
    __syncthreads();
    for (int k = 0; k < VECTORS; ++k) {{
        if (ty == 0) {{
            float squares = 0.0f;
            for (int i = tx; i < LENGTH; i += 32) squares += a[k][i] * a[k][i];
            float norm = sqrtf(warp_sum(squares));
            if (tx == 0) {{
                r[(m * VECTORS + k) * VECTORS + k] = norm;
                scale = 1.0f / norm;
            }}
        }}
        __syncthreads();
        for (int i = tid; i < LENGTH; i += 256) a[k][i] *= scale;
        __syncthreads();
        for (int j = k + 1 + ty; j < VECTORS; j += 8) {{
            float dot = 0.0f;
            for (int i = tx; i < LENGTH; i += 32) dot += a[k][i] * a[j][i];
            dot = warp_sum(dot);
            for (int i = tx; i < LENGTH; i += 32) a[j][i] -= dot * a[k][i];
            if (tx == 0) r[(m * VECTORS + k) * VECTORS + j] = dot;
        }}
        __syncthreads();
    }}
    for (int i = tid; i < LENGTH * VECTORS; i += 256) q[m * LENGTH * VECTORS + i] = a[i % VECTORS][i / VECTORS];
}}
"""


def gram_schmidt_work(size: str) -> Work:
    n = sized(size, 1 << 14, 5, cpu=1 << 12)
    return Work(
        grid=(n,),
        block=(32, 8),
        args=(
            random(402, n, LENGTH, VECTORS) - np.float32(0.5), np.empty((n, LENGTH, VECTORS), np.float32),
            np.empty((n, VECTORS, VECTORS), np.float32),
        ),
        outputs=(1, 2),
        extents=(),
        n_bytes=4 * n * VECTORS * (2 * LENGTH + VECTORS),
        flops=2 * n * LENGTH * VECTORS**2,
    )  # fmt: skip


def gram_schmidt_reference(xp, args):
    a = args[0].astype(xp.float64)
    r = xp.zeros((len(a), VECTORS, VECTORS))
    for k in range(VECTORS):
        r[:, k, k] = xp.sqrt((a[:, :, k] ** 2).sum(axis=1))
        a[:, :, k] /= r[:, k, k, None]
        r[:, k, k + 1 :] = (a[:, :, k, None] * a[:, :, k + 1 :]).sum(axis=1)
        a[:, :, k + 1 :] -= a[:, :, k, None] * r[:, k, None, k + 1 :]
    return a, r


def make_adi(cuda):
    @cuda.jit
    def adi_columns(u, a, b, d, f, p, q, v):
        n_rows, n_columns = u.shape
        i = cuda.grid(1)
        if i > 0 and i < n_columns - 1:
            p[0, i] = 0.0
            q[0, i] = 1.0
            for j in range(1, n_rows - 1):
                divisor = a * p[j - 1, i] + b
                p[j, i] = -a / divisor
                flow = -d * u[j, i - 1] + (1.0 + d + f) * u[j, i] - f * u[j, i + 1]
                q[j, i] = (flow - a * q[j - 1, i]) / divisor
            v[0, i] = 1.0
            v[n_rows - 1, i] = 1.0
            for j in range(n_rows - 2, 0, -1):
                v[j, i] = p[j, i] * v[j + 1, i] + q[j, i]
        elif i < n_columns:
            for j in range(n_rows):
                v[j, i] = u[j, i]

    return adi_columns


ADI_CPP = """
extern "C" __global__ void peer(const double* u, double a, double b, double d, double f, double* p, double* q,
                                double* v, int n_rows, int n_columns) {
    int n = n_columns, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        p[i] = 0.0;
        q[i] = 1.0;
        for (int j = 1; j < n_rows - 1; ++j) {
            double divisor = a * p[(j - 1) * n + i] + b;
            p[j * n + i] = -a / divisor;
            double flow = -d * u[j * n + i - 1] + (1.0 + d + f) * u[j * n + i] - f * u[j * n + i + 1];
            q[j * n + i] = (flow - a * q[(j - 1) * n + i]) / divisor;
        }
        v[i] = 1.0;
        v[(n_rows - 1) * n + i] = 1.0;
        for (int j = n_rows - 2; j > 0; --j) v[j * n + i] = p[j * n + i] * v[(j + 1) * n + i] + q[j * n + i];
    } else if (i < n) {
        for (int j = 0; j < n_rows; ++j) v[j * n + i] = u[j * n + i];
    }
}
"""


def adi_work(size: str) -> Work:
    n_rows, n_columns = sized(size, (512, 1 << 14), (30, 77), cpu=(512, 1 << 13))
    u = np.random.default_rng(403).random((n_rows, n_columns))
    mul = 0.7
    coefficients = (np.float64(value) for value in (-mul / 2, 1 + mul, -mul / 2, -mul / 2))
    p, q, v = (np.empty_like(u) for _ in range(3))
    return Work(
        grid=(blocks(n_columns, 64),),
        block=(64,),
        args=(u, *coefficients, p, q, v),
        outputs=(7,),
        extents=(n_rows, n_columns),
        n_bytes=8 * 2 * n_rows * n_columns,
        flops=12 * n_rows * n_columns,
    )


def adi_reference(xp, args):
    u, (a, b, d, f) = args[0], (float(each) for each in args[1:5])
    v, p, q = u.copy(), xp.zeros(u.shape), xp.ones(u.shape)
    flow = -d * u[:, :-2] + (1 + d + f) * u[:, 1:-1] - f * u[:, 2:]
    for j in range(1, len(u) - 1):
        divisor = a * p[j - 1, 1:-1] + b
        p[j, 1:-1] = -a / divisor
        q[j, 1:-1] = (flow[j] - a * q[j - 1, 1:-1]) / divisor
    v[0, 1:-1] = v[-1, 1:-1] = 1
    for j in range(len(u) - 2, 0, -1):
        v[j, 1:-1] = p[j, 1:-1] * v[j + 1, 1:-1] + q[j, 1:-1]
    return (v,)


CASES = (
    Case(
        "bicg, transposed matrix by vector",
        make_bicg,
        "void(float32[:, ::1], float32[::1], float32[::1])",
        BICG_CPP,
        bicg_work,
        lambda xp, args: (args[0].astype(xp.float64).T @ args[1].astype(xp.float64),),
        accumulates=True,
    ),
    Case(
        "Gram-Schmidt, a block a matrix",
        make_gram_schmidt,
        "void(float32[:, :, ::1], float32[:, :, ::1], float32[:, :, ::1])",
        GRAM_SCHMIDT_CPP,
        gram_schmidt_work,
        gram_schmidt_reference,
    ),
    Case(
        "ADI of float64, columns",
        make_adi,
        "void(float64[:, ::1], float64, float64, float64, float64, float64[:, ::1], float64[:, ::1], float64[:, ::1])",
        ADI_CPP,
        adi_work,
        adi_reference,
        tolerance=1e-12,
    ),
)
