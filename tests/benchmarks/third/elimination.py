"""Linear algebra by elimination: Rodinia's LUD and Gaussian elimination, Cholesky and 4x4 inverses of many matrices."""

from __future__ import annotations

import math

import numpy as np
from suite.case import blocks, random, sized

from third.forms import Host, given, on_cpu

ZERO, ONE = np.float32(0), np.float32(1)
ORDER = 6


def make_lud(cuda):
    @cuda.jit
    def diagonal(m, offset):
        tid = cuda.threadIdx.x
        shadow = cuda.shared.array((16, 16), np.float32)
        for i in range(16):
            shadow[i, tid] = m[offset + i, offset + tid]
        cuda.syncthreads()
        for i in range(15):
            if tid > i:
                for j in range(i):
                    shadow[tid, i] -= shadow[tid, j] * shadow[j, i]
                shadow[tid, i] /= shadow[i, i]
            cuda.syncthreads()
            if tid > i:
                for j in range(i + 1):
                    shadow[i + 1, tid] -= shadow[i + 1, j] * shadow[j, tid]
            cuda.syncthreads()
        for i in range(1, 16):
            m[offset + i, offset + tid] = shadow[i, tid]

    @cuda.jit
    def perimeter(m, offset):
        dia = cuda.shared.array((16, 16), np.float32)
        peri_row = cuda.shared.array((16, 16), np.float32)
        peri_col = cuda.shared.array((16, 16), np.float32)
        tid = cuda.threadIdx.x
        other = offset + (cuda.blockIdx.x + 1) * 16
        if tid < 16:
            idx = tid
            for i in range(8):
                dia[i, idx] = m[offset + i, offset + idx]
            for i in range(16):
                peri_row[i, idx] = m[offset + i, other + idx]
        else:
            idx = tid - 16
            for i in range(8, 16):
                dia[i, idx] = m[offset + i, offset + idx]
            for i in range(16):
                peri_col[i, idx] = m[other + i, offset + idx]
        cuda.syncthreads()
        if tid < 16:
            idx = tid
            for i in range(1, 16):
                for j in range(i):
                    peri_row[i, idx] -= dia[i, j] * peri_row[j, idx]
        else:
            idx = tid - 16
            for i in range(16):
                for j in range(i):
                    peri_col[idx, i] -= peri_col[idx, j] * dia[j, i]
                peri_col[idx, i] /= dia[i, i]
        cuda.syncthreads()
        if tid < 16:
            idx = tid
            for i in range(1, 16):
                m[offset + i, other + idx] = peri_row[i, idx]
        else:
            idx = tid - 16
            for i in range(16):
                m[other + i, offset + idx] = peri_col[i, idx]

    @cuda.jit
    def internal(m, offset):
        peri_row = cuda.shared.array((16, 16), np.float32)
        peri_col = cuda.shared.array((16, 16), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = offset + (cuda.blockIdx.y + 1) * 16
        column = offset + (cuda.blockIdx.x + 1) * 16
        peri_row[ty, tx] = m[offset + ty, column + tx]
        peri_col[ty, tx] = m[row + ty, offset + tx]
        cuda.syncthreads()
        total = ZERO
        for i in range(16):
            total += peri_col[ty, i] * peri_row[i, tx]
        m[row + ty, column + tx] -= total

    def lud(grid, block, m):
        n = m.shape[0]
        for offset in range(0, n - 16, 16):
            diagonal[1, 16](m, offset)
            left = (n - offset) // 16 - 1
            perimeter[left, 32](m, offset)
            internal[(left, left), (16, 16)](m, offset)
        diagonal[1, 16](m, n - 16)

    return Host(lud)


def heavy(seed: int, n: int):
    """A diagonally dominant matrix, which needs no pivots."""
    return random(seed, n, n) + n * np.eye(n, dtype=np.float32)


def lud_work(size: str):
    n = sized(size, 512, 64)
    return given((1,), (16,), (heavy(230, n),), (0,), (n,), in_place=(0,))


def lud_reference(xp, args):
    m = args[0].astype(xp.float64)
    for k in range(m.shape[0] - 1):
        m[k + 1 :, k] /= m[k, k]
        m[k + 1 :, k + 1 :] -= m[k + 1 :, k, None] * m[k, k + 1 :]
    return (m,)


def make_gaussian(cuda):
    @cuda.jit
    def fan1(m, a, t):
        i = cuda.grid(1)
        n = a.shape[0]
        if i < n - 1 - t:
            m[i + t + 1, t] = a[i + t + 1, t] / a[t, t]

    @cuda.jit
    def fan2(m, a, b, t):
        x, y = cuda.grid(2)
        n = a.shape[0]
        if x < n - 1 - t and y < n - t:
            a[x + 1 + t, y + t] -= m[x + 1 + t, t] * a[t, y + t]
            if y == 0:
                b[x + 1 + t] -= m[x + 1 + t, t] * b[t]

    def gaussian(grid, block, m, a, b):
        n = a.shape[0]
        for t in range(n - 1):
            fan1[blocks(n, 512), 512](m, a, t)
            fan2[grid, block](m, a, b, t)

    return Host(gaussian)


def gaussian_work(size: str):
    n = sized(size, 768, 40)
    args = (np.zeros((n, n), np.float32), heavy(231, n), random(232, n))
    return given((blocks(n, 16), blocks(n, 16)), (16, 16), args, (0, 1, 2), (n,), in_place=(0, 1, 2))


def gaussian_reference(xp, args):
    m, a, b = (each.astype(xp.float64) for each in args)
    for t in range(a.shape[0] - 1):
        m[t + 1 :, t] = a[t + 1 :, t] / a[t, t]
        a[t + 1 :, t:] -= m[t + 1 :, t, None] * a[t, t:]
        b[t + 1 :] -= m[t + 1 :, t] * b[t]
    return m, a, b


def make_cholesky(cuda):
    @cuda.jit
    def cholesky(matrices, out):
        i = cuda.grid(1)
        if i < matrices.shape[0]:
            factor = cuda.local.array((ORDER, ORDER), np.float32)
            for row in range(ORDER):
                for column in range(row + 1):
                    total = matrices[i, row, column]
                    for k in range(column):
                        total -= factor[row, k] * factor[column, k]
                    if row == column:
                        factor[row, row] = math.sqrt(total)
                    else:
                        factor[row, column] = total / factor[column, column]
            for row in range(ORDER):
                for column in range(ORDER):
                    out[i, row, column] = factor[row, column] if column <= row else ZERO

    return cholesky


def cholesky_work(size: str):
    n = sized(size, 1 << 16, 300)
    matrices = random(233, n, ORDER, ORDER)
    symmetric = matrices + matrices.transpose(0, 2, 1) + np.float32(2 * ORDER) * np.eye(ORDER, dtype=np.float32)
    return given((blocks(n, 128),), (128,), (symmetric, np.empty_like(symmetric)), (1,), (n,))


def cholesky_reference(xp, args):
    return (xp.linalg.cholesky(args[0].astype(xp.float64)),)


def make_inverse(cuda):
    @cuda.jit
    def inverse(matrices, out):
        i = cuda.grid(1)
        if i < matrices.shape[0]:
            m = cuda.local.array((4, 8), np.float32)
            for row in range(4):
                for column in range(4):
                    m[row, column] = matrices[i, row, column]
                    m[row, column + 4] = ONE if row == column else ZERO
            for k in range(4):
                pivot = k
                for row in range(k + 1, 4):
                    if abs(m[row, k]) > abs(m[pivot, k]):
                        pivot = row
                if pivot != k:
                    for column in range(8):
                        swap = m[k, column]
                        m[k, column] = m[pivot, column]
                        m[pivot, column] = swap
                scale = ONE / m[k, k]
                for column in range(8):
                    m[k, column] *= scale
                for row in range(4):
                    if row != k:
                        factor = m[row, k]
                        for column in range(8):
                            m[row, column] -= factor * m[k, column]
            for row in range(4):
                for column in range(4):
                    out[i, row, column] = m[row, column + 4]

    return inverse


def inverse_work(size: str):
    n = sized(size, 1 << 16, 300)
    matrices = random(234, n, 4, 4)
    matrices[:, [1, 2, 3, 0], [0, 1, 2, 3]] += np.float32(3)  # far from singular, with pivots off the diagonal
    return given((blocks(n, 128),), (128,), (matrices, np.empty_like(matrices)), (1,), (n,))


def inverse_reference(xp, args):
    return (xp.linalg.inv(args[0].astype(xp.float64)),)


CASES = (
    on_cpu("LUD in blocks", make_lud, lud_work, lud_reference),
    on_cpu("Gaussian elimination", make_gaussian, gaussian_work, gaussian_reference),
    on_cpu("Cholesky, 6x6 a thread", make_cholesky, cholesky_work, cholesky_reference),
    on_cpu("inverses, 4x4 with pivots", make_inverse, inverse_work, inverse_reference),
)
