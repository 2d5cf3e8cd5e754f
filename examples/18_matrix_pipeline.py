"""Matrix multiplication on tensor cores: asynchronous copies fetch tiles several steps ahead of the products."""

import numpy as np
from weft import cuda

M, N, K, STAGES = 128, 256, 64, 4  # a block computes M x N elements, in steps of K
WARPS, THREADS = N // 64, M // 64 * (N // 64) * 32  # a warp computes 64 x 64, WARPS are in a row
A, B, C = (STAGES, M, K), (STAGES, WARPS, K, 64), (M, N + 8)  # B has panels, C padding: no bank conflicts
A_SIZE, SIZE, C_SIZE = STAGES * M * K, STAGES * (M + N) * K, M * (N + 8)
PART = cuda.uint32x4  # 16 bytes: 8 float16
T = cuda.mma.tile(64, 64, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit
def fetch(tile, source, row, column, rows):
    for n in range(rows * 8 // THREADS):
        y, x = divmod(n * THREADS + cuda.threadIdx.x, 8)
        cuda.copy_async(tile, (y, x), source, (row + y, column + x))


@cuda.jit(launch_bounds=THREADS)
def matmul(a, b, c):
    memory = cuda.shared.array(0, np.float16)
    a_tiles = cuda.shared.swizzled(memory[:A_SIZE].reshape(A), 128)
    b_tiles = cuda.shared.swizzled(memory[A_SIZE:SIZE].reshape(B), 128)
    a_parts, b_parts, a_from, b_from = a_tiles.view(PART), b_tiles.view(PART), a.view(PART), b.view(PART)
    warp, steps, i, j = cuda.threadIdx.x // 32, a.shape[1] // K, cuda.blockIdx.y * M, cuda.blockIdx.x * N
    row, panel = warp // WARPS * 64, warp % WARPS
    for s in range(STAGES - 1):
        fetch(a_parts[s], a_from, i, s * 8, M)
        for p in range(WARPS):
            fetch(b_parts[s, p], b_from, s * K, j // 8 + p * 8, K)
        cuda.copy_commit()
    cuda.copy_wait(STAGES - 2)  # the tiles of the first step have arrived
    cuda.syncthreads()
    a0, b0, acc = T.a(a_tiles[0], row, 0), T.b(b_tiles[0, panel], 0, 0), T.zeros()
    for step in range(steps):
        s, after, later = step % STAGES, (step + 1) % STAGES, step + STAGES - 1
        a1, b1 = T.a(a_tiles[s], row, 16), T.b(b_tiles[s, panel], 16, 0)
        acc = T.mma(a0, b0, acc)
        a0, b0 = T.a(a_tiles[s], row, 32), T.b(b_tiles[s, panel], 32, 0)
        acc = T.mma(a1, b1, acc)
        cuda.copy_wait(STAGES - 3)  # the next tiles have arrived, and no thread reads those before this step's
        cuda.syncthreads()
        a1, b1 = T.a(a_tiles[s], row, 48), T.b(b_tiles[s, panel], 48, 0)
        if later < steps:
            fetch(a_parts[later % STAGES], a_from, i, later * 8, M)
        acc = T.mma(a0, b0, acc)
        a0, b0 = T.a(a_tiles[after], row, 0), T.b(b_tiles[after, panel], 0, 0)
        if later < steps:
            for p in range(WARPS):
                fetch(b_parts[later % STAGES, p], b_from, later * K, j // 8 + p * 8, K)
        cuda.copy_commit()
        acc = T.mma(a1, b1, acc)
    cuda.syncthreads()
    tile = memory[:C_SIZE].reshape(C)  # through it, each warp stores whole rows
    T.store(tile, row, panel * 64, acc)
    cuda.syncthreads()
    for n in range(M * N // 8 // THREADS):
        y, x = divmod(n * THREADS + cuda.threadIdx.x, N // 8)
        c.view(PART)[i + y, j // 8 + x] = tile.view(PART)[y, x]


def main():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((128, 320)).astype(np.float16), rng.standard_normal((320, 256)).astype(np.float16)
    c = np.zeros((128, 256), np.float16)
    matmul[(c.shape[1] // N, c.shape[0] // M), THREADS, 0, 2 * SIZE](a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-2)
    print(f"18_matrix_pipeline: {a.shape} @ {b.shape}: ok")


if __name__ == "__main__":
    main()
