"""Matrices: naive and tiled products, and a transpose through a padded tile.

The tiled kernels have no guards: the extents are multiples of the tile.
"""

from __future__ import annotations

import numpy as np

from suite.case import Case, Work, blocks, random, sized

ZERO = np.float32(0)


def make_naive(cuda):
    @cuda.jit
    def matmul_naive(a, b, out):
        column, row = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            total = ZERO
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            out[row, column] = total

    return matmul_naive


NAIVE_CPP = """
extern "C" __global__ void peer(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) {
        float total = 0.0f;
        for (int k = 0; k < n; ++k) total += a[row * n + k] * b[k * n + column];
        out[row * n + column] = total;
    }
}
"""


def make_tiled(tile):
    def make(cuda):
        @cuda.jit
        def matmul_tiled(a, b, out):
            tile_a = cuda.shared.array((tile, tile), np.float32)
            tile_b = cuda.shared.array((tile, tile), np.float32)
            tx = cuda.threadIdx.x
            ty = cuda.threadIdx.y
            column, row = cuda.grid(2)
            total = ZERO
            for start in range(0, a.shape[1], tile):
                tile_a[ty, tx] = a[row, start + tx]
                tile_b[ty, tx] = b[start + ty, column]
                cuda.syncthreads()
                for k in range(tile):
                    total += tile_a[ty, k] * tile_b[k, tx]
                cuda.syncthreads()
            out[row, column] = total

        return matmul_tiled

    return make


TILED_CPP = """
constexpr int TILE = @TILE@;
extern "C" __global__ void peer(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                int n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tile_a[ty][tx] = a[row * n + start + tx];
        tile_b[ty][tx] = b[(start + ty) * n + column];
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < TILE; ++k) total += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads();
    }
    out[row * n + column] = total;
}
"""


def matmul_work(size: str, tile: int, tiny: int) -> Work:
    n = sized(size, 2048, tiny, cpu=1024)
    return Work(
        grid=(blocks(n, tile), blocks(n, tile)),
        block=(tile, tile),
        args=(random(4, n, n), random(5, n, n), np.empty((n, n), np.float32)),
        outputs=(2,),
        extents=(n,),
        n_bytes=12 * n * n,
        flops=2 * n**3,
    )


def matmul_reference(xp, args):
    return (xp.matmul(args[0].astype(xp.float64), args[1].astype(xp.float64)),)


def make_transpose(cuda):
    @cuda.jit
    def transpose(a, out):
        tile = cuda.shared.array((32, 33), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x = cuda.blockIdx.x * 32
        y = cuda.blockIdx.y * 32
        for j in range(0, 32, 8):
            tile[ty + j, tx] = a[y + ty + j, x + tx]
        cuda.syncthreads()
        for j in range(0, 32, 8):
            out[x + ty + j, y + tx] = tile[tx, ty + j]

    return transpose


TRANSPOSE_CPP = """
extern "C" __global__ void peer(const float* __restrict__ a, float* __restrict__ out, int n) {
    __shared__ float tile[32][33];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32, y = blockIdx.y * 32;
    #pragma unroll
    for (int j = 0; j < 32; j += 8) tile[ty + j][tx] = a[(y + ty + j) * n + x + tx];
    __syncthreads();
    #pragma unroll
    for (int j = 0; j < 32; j += 8) out[(x + ty + j) * n + y + tx] = tile[tx][ty + j];
}
"""


def transpose_work(size: str) -> Work:
    n = sized(size, 8192, 64, cpu=4096)
    return Work(
        grid=(n // 32, n // 32),
        block=(32, 8),
        args=(random(6, n, n), np.empty((n, n), np.float32)),
        outputs=(1,),
        extents=(n,),
        n_bytes=8 * n * n,
    )


MATMUL_SIGNATURE = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])"
CASES = (
    Case(
        "matmul, naive",
        make_naive,
        MATMUL_SIGNATURE,
        NAIVE_CPP,
        lambda size: matmul_work(size, 16, 40),
        matmul_reference,
    ),
    *(
        Case(
            f"matmul, {tile}x{tile} tiles",
            make_tiled(tile),
            MATMUL_SIGNATURE,
            TILED_CPP.replace("@TILE@", str(tile)),
            lambda size, tile=tile: matmul_work(size, tile, 64),
            matmul_reference,
        )
        for tile in (16, 32)
    ),
    Case(
        "transpose",
        make_transpose,
        "void(float32[:, ::1], float32[:, ::1])",
        TRANSPOSE_CPP,
        transpose_work,
        lambda xp, args: (args[0].T.astype(xp.float64),),
        tolerance=0.0,
    ),
)
