"""Sparse linear algebra in float64: the residual of a system in CSR, with a warp for each row."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, sized

THREADS = 256


def make_residual(cuda):
    @cuda.jit(device=True)
    def sum_of_warp(value):
        for k in range(5):
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 16 >> k)
        return value

    @cuda.jit
    def residual(starts, columns, values, x, b, r, norm):
        sums = cuda.shared.array(THREADS // 32, np.float64)
        lane = cuda.threadIdx.x % 32
        warp = cuda.threadIdx.x // 32
        n_warps = cuda.gridsize(1) // 32
        squares = 0.0
        for row in range(cuda.grid(1) // 32, r.size, n_warps):
            total = 0.0
            for k in range(starts[row] + lane, starts[row + 1], 32):
                total += values[k] * x[columns[k]]
            difference = b[row] - sum_of_warp(total)
            squares += difference * difference
            if lane == 0:
                r[row] = difference
        if lane == 0:
            sums[warp] = squares
        cuda.syncthreads()
        if warp == 0:
            total = sums[lane] if lane < THREADS // 32 else 0.0
            total = sum_of_warp(total)
            if lane == 0:
                cuda.atomic.add(norm, 0, total)

    return residual


RESIDUAL_CPP = f"""
#define THREADS {THREADS}
__device__ double sum_of_warp(double value) {{
    for (int k = 0; k < 5; ++k) value += __shfl_xor_sync(0xffffffff, value, 16 >> k);
    return value;
}}

extern "C" __global__ void peer(const int* starts, const int* columns, const double* values, const double* x,
                                const double* b, double* r, double* norm, int n) {{
    __shared__ double sums[THREADS / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = gridDim.x * blockDim.x / 32;
    double squares = 0.0;
    for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32; row < n; row += n_warps) {{
        double total = 0.0;
        int end = starts[row + 1];
        for (int k = starts[row] + lane; k < end; k += 32) total += values[k] * x[columns[k]];
        double difference = b[row] - sum_of_warp(total);
        squares += difference * difference;
        if (lane == 0) r[row] = difference;
    }}
    if (lane == 0) sums[warp] = squares;
    __syncthreads();
    if (warp == 0) {{
        double total = lane < THREADS / 32 ? sums[lane] : 0.0;
        total = sum_of_warp(total);
        if (lane == 0) atomicAdd(norm, total);
    }}
}}
"""


def residual_work(size: str) -> Work:
    n, longest = sized(size, (1 << 17, 160), (301, 70), cpu=(1 << 17, 160))
    numbers = np.random.default_rng(330)
    starts = np.zeros(n + 1, np.int32)
    np.cumsum(numbers.integers(0, longest + 1, n), out=starts[1:])
    # As in a discretized domain, most columns are near the diagonal.
    row = np.repeat(np.arange(n), np.diff(starts))
    columns = np.clip(row + numbers.normal(scale=n / 64, size=row.size), 0, n - 1).astype(np.int32)
    grid = sized(size, 132 * 8, 7, cpu=64)
    return Work(
        grid=(min(grid, blocks(n, THREADS // 32)),),
        block=(THREADS,),
        args=(starts, columns, numbers.random(row.size), numbers.random(n), numbers.random(n), np.empty(n),
              np.zeros(1)),
        outputs=(5, 6),
        extents=(n,),
        n_bytes=12 * row.size + 28 * n,
        flops=2 * row.size,
    )  # fmt: skip


def residual_reference(xp, args):
    starts, columns, values, x, b = args[:5]
    row = xp.searchsorted(starts[1:], xp.arange(columns.size, dtype=starts.dtype), side="right")
    r = b - xp.bincount(row, weights=values * x[columns], minlength=b.size)
    return r, (r * r).sum(keepdims=True)


CASES = (
    Case(
        "residual in CSR, a warp a row",
        make_residual,
        "void(int32[::1], int32[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])",
        RESIDUAL_CPP,
        residual_work,
        residual_reference,
        tolerance=1e-12,
        accumulates=True,
    ),
)
