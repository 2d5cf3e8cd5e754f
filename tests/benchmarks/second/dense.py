"""Dense matrices: products of ints, with a vector, Jacobi, small inverses, LU within a block, and Floyd-Warshall."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

ZERO, ONE = np.float32(0), np.float32(1)


def make_int_matmul(cuda):
    @cuda.jit
    def int_matmul(a, b, c):
        column, row = cuda.grid(2)
        if row < c.shape[0] and column < c.shape[1]:
            total = 0
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            c[row, column] = total

    return int_matmul


INT_MATMUL_CPP = """
extern "C" __global__ void peer(const int* a, const int* b, int* c, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) {
        int total = 0;
        for (int k = 0; k < n; ++k) total += a[row * n + k] * b[k * n + column];
        c[row * n + column] = total;
    }
}
"""


def int_matmul_work(size: str) -> Work:
    n = sized(size, 1024, 37, cpu=512)
    numbers = np.random.default_rng(30)
    a, b = (numbers.integers(-100, 100, (n, n), dtype=np.int32) for _ in range(2))
    return Work(
        grid=(blocks(n, 16), blocks(n, 16)),
        block=(16, 16),
        args=(a, b, np.empty((n, n), np.int32)),
        outputs=(2,),
        extents=(n,),
        n_bytes=12 * n * n,
        flops=2 * n**3,
    )


def make_matvec(cuda):
    @cuda.jit
    def matvec(a, x, y):
        partial = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        total = ZERO
        for k in range(tid, a.shape[1], 256):
            total += a[row, k] * x[k]
        partial[tid] = total
        cuda.syncthreads()
        half = 128
        while half > 0:
            if tid < half:
                partial[tid] += partial[tid + half]
            cuda.syncthreads()
            half //= 2
        if tid == 0:
            y[row] = partial[0]

    return matvec


MATVEC_CPP = """
extern "C" __global__ void peer(const float* a, const float* x, float* y, int columns) {
    __shared__ float partial[256];
    int tid = threadIdx.x, row = blockIdx.x;
    float total = 0.0f;
    for (int k = tid; k < columns; k += 256) total += a[row * columns + k] * x[k];
    partial[tid] = total;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (tid < half) partial[tid] += partial[tid + half];
        __syncthreads();
    }
    if (tid == 0) y[row] = partial[0];
}
"""


def matvec_work(size: str) -> Work:
    rows, columns = sized(size, (8192, 4096), (5, 700), cpu=(4096, 4096))
    return Work(
        grid=(rows,),
        block=(256,),
        args=(random(31, rows, columns), random(32, columns), np.empty(rows, np.float32)),
        outputs=(2,),
        extents=(columns,),
        n_bytes=4 * (rows * columns + rows + columns),
        flops=2 * rows * columns,
    )


def make_jacobi(cuda):
    @cuda.jit
    def jacobi(a, b, x, out):
        i = cuda.grid(1)
        n = b.shape[0]
        if i < n:
            total = ZERO
            for j in range(n):
                if j != i:
                    total += a[i, j] * x[j]
            out[i] = (b[i] - total) / a[i, i]

    return jacobi


JACOBI_CPP = """
extern "C" __global__ void peer(const float* a, const float* b, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float total = 0.0f;
        for (int j = 0; j < n; ++j)
            if (j != i) total += a[i * n + j] * x[j];
        out[i] = (b[i] - total) / a[i * n + i];
    }
}
"""


def jacobi_work(size: str) -> Work:
    n = sized(size, 4096, 150)
    a = random(33, n, n)
    a[np.diag_indices(n)] += np.float32(n)
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(a, random(34, n), random(35, n), np.empty(n, np.float32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=4 * (n * n + 3 * n),
        flops=2 * n * n,
    )


def jacobi_reference(xp, args):
    a, b, x = (array.astype(xp.float64) for array in args[:3])
    diagonal = xp.diag(a)
    return ((b - (a @ x - diagonal * x)) / diagonal,)


def make_inverse(cuda):
    @cuda.jit
    def inverse(m, out):
        i = cuda.grid(1)
        if i < m.shape[0]:
            a = m[i, 0, 0]
            b = m[i, 0, 1]
            c = m[i, 0, 2]
            d = m[i, 1, 0]
            e = m[i, 1, 1]
            f = m[i, 1, 2]
            g = m[i, 2, 0]
            h = m[i, 2, 1]
            k = m[i, 2, 2]
            ca = e * k - f * h
            cb = f * g - d * k
            cc = d * h - e * g
            scale = ONE / (a * ca + b * cb + c * cc)
            out[i, 0, 0] = ca * scale
            out[i, 0, 1] = (c * h - b * k) * scale
            out[i, 0, 2] = (b * f - c * e) * scale
            out[i, 1, 0] = cb * scale
            out[i, 1, 1] = (a * k - c * g) * scale
            out[i, 1, 2] = (c * d - a * f) * scale
            out[i, 2, 0] = cc * scale
            out[i, 2, 1] = (b * g - a * h) * scale
            out[i, 2, 2] = (a * e - b * d) * scale

    return inverse


INVERSE_CPP = """
extern "C" __global__ void peer(const float* m, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float* p = m + 9 * i;
        float* q = out + 9 * i;
        float a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7], k = p[8];
        float ca = e * k - f * h, cb = f * g - d * k, cc = d * h - e * g;
        float scale = 1.0f / (a * ca + b * cb + c * cc);
        q[0] = ca * scale;
        q[1] = (c * h - b * k) * scale;
        q[2] = (b * f - c * e) * scale;
        q[3] = cb * scale;
        q[4] = (a * k - c * g) * scale;
        q[5] = (c * d - a * f) * scale;
        q[6] = cc * scale;
        q[7] = (b * g - a * h) * scale;
        q[8] = (a * e - b * d) * scale;
    }
}
"""


def inverse_work(size: str) -> Work:
    n = sized(size, 1 << 21, 300, cpu=1 << 20)
    m = random(36, n, 3, 3) + np.float32(3) * np.eye(3, dtype=np.float32)
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(m, np.empty_like(m)),
        outputs=(1,),
        extents=(n,),
        n_bytes=72 * n,
        flops=40 * n,
    )


def inverse_reference(xp, args):
    m, part = args[0].astype(xp.float64), 1 << 15  # cuBLAS limits the number of matrices per call
    return (xp.concatenate([xp.linalg.inv(m[begin : begin + part]) for begin in range(0, len(m), part)]),)


def make_lu(cuda):
    @cuda.jit
    def lu(matrices, out):
        m = cuda.shared.array((16, 16), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        block = cuda.blockIdx.x
        m[ty, tx] = matrices[block, ty, tx]
        cuda.syncthreads()
        for k in range(15):
            if ty > k and tx == k:
                m[ty, k] /= m[k, k]
            cuda.syncthreads()
            if ty > k and tx > k:
                m[ty, tx] -= m[ty, k] * m[k, tx]
            cuda.syncthreads()
        out[block, ty, tx] = m[ty, tx]

    return lu


LU_CPP = """
extern "C" __global__ void peer(const float* matrices, float* out) {
    __shared__ float m[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, i = (blockIdx.x * 16 + ty) * 16 + tx;
    m[ty][tx] = matrices[i];
    __syncthreads();
    for (int k = 0; k < 15; ++k) {
        if (ty > k && tx == k) m[ty][k] /= m[k][k];
        __syncthreads();
        if (ty > k && tx > k) m[ty][tx] -= m[ty][k] * m[k][tx];
        __syncthreads();
    }
    out[i] = m[ty][tx];
}
"""


def lu_work(size: str) -> Work:
    n = sized(size, 1 << 15, 3, cpu=1 << 14)
    matrices = random(37, n, 16, 16) + np.float32(8) * np.eye(16, dtype=np.float32)
    return Work(
        grid=(n,),
        block=(16, 16),
        args=(matrices, np.empty_like(matrices)),
        outputs=(1,),
        extents=(),
        n_bytes=2048 * n,
        flops=2 * 16**3 // 3 * n,
    )


def lu_reference(xp, args):
    m = args[0].astype(xp.float64)
    for k in range(15):
        m[:, k + 1 :, k] /= m[:, k, k, None]
        m[:, k + 1 :, k + 1 :] -= m[:, k + 1 :, k, None] * m[:, k, None, k + 1 :]
    return (m,)


def make_floyd(cuda):
    @cuda.jit
    def floyd(distance, k, out):
        j, i = cuda.grid(2)
        n = distance.shape[0]
        if i < n and j < n:
            out[i, j] = min(distance[i, j], distance[i, k] + distance[k, j])

    return floyd


FLOYD_CPP = """
extern "C" __global__ void peer(const int* distance, int k, int* out, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) out[i * n + j] = min(distance[i * n + j], distance[i * n + k] + distance[k * n + j]);
}
"""


def floyd_work(size: str) -> Work:
    n = sized(size, 4096, 45)
    distance = np.random.default_rng(38).integers(1, 1000, (n, n), dtype=np.int32)
    return Work(
        grid=(blocks(n, 16), blocks(n, 16)),
        block=(16, 16),
        args=(distance, np.int32(n // 3), np.empty_like(distance)),
        outputs=(2,),
        extents=(n,),
        n_bytes=8 * n * n,
        flops=2 * n * n,
    )


def floyd_reference(xp, args):
    distance, k = args[0].astype(xp.int64), int(args[1])
    return (xp.minimum(distance, distance[:, k, None] + distance[None, k, :]),)


CASES = (
    Case(
        "matmul of int32, naive",
        make_int_matmul,
        "void(int32[:, ::1], int32[:, ::1], int32[:, ::1])",
        INT_MATMUL_CPP,
        int_matmul_work,
        lambda xp, args: (args[0].astype(xp.float64) @ args[1].astype(xp.float64),),
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "matrix by vector, a block a row",
        make_matvec,
        "void(float32[:, ::1], float32[::1], float32[::1])",
        MATVEC_CPP,
        matvec_work,
        lambda xp, args: (args[0].astype(xp.float64) @ args[1].astype(xp.float64),),
    ),
    Case(
        "Jacobi, a thread a row",
        make_jacobi,
        "void(float32[:, ::1], float32[::1], float32[::1], float32[::1])",
        JACOBI_CPP,
        jacobi_work,
        jacobi_reference,
        tolerance=1e-4,
    ),
    Case(
        "inverses, 3x3",
        make_inverse,
        "void(float32[:, :, ::1], float32[:, :, ::1])",
        INVERSE_CPP,
        inverse_work,
        inverse_reference,
    ),
    Case(
        "LU, 16x16 in a block",
        make_lu,
        "void(float32[:, :, ::1], float32[:, :, ::1])",
        LU_CPP,
        lu_work,
        lu_reference,
    ),
    Case(
        "Floyd-Warshall, one step",
        make_floyd,
        "void(int32[:, ::1], int32, int32[:, ::1])",
        FLOYD_CPP,
        floyd_work,
        floyd_reference,
        tolerance=0.0,
        wider=True,
    ),
)
