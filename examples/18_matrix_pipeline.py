"""Matrix multiplication on tensor cores: asynchronous copies fetch tiles several steps ahead of the products."""

import numpy as np
from weft import cuda

M, N, K, STAGES = 128, 256, 32, 4  # a block computes M x N elements, in steps of K
WARPS = N // 64  # in a row: a warp computes 64 x 64
THREADS = M // 64 * WARPS * 32
A, B = (STAGES, M, K + 8), (STAGES, K, N + 8)  # rows have 8 elements of padding: no bank conflicts
A_SIZE = STAGES * M * (K + 8)
SIZE = A_SIZE + STAGES * K * (N + 8)
PART = cuda.uint32x4  # 16 bytes: 8 float16
T = cuda.mma.tile(64, 64, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit
def fetch(tile, source, row, column, height, width):
    for n in range(height * width // THREADS):
        at = n * THREADS + cuda.threadIdx.x
        cuda.copy_async(tile, (at // width, at % width), source, (row + at // width, column + at % width))


@cuda.jit(launch_bounds=THREADS)
def matmul(a, b, c):
    memory = cuda.shared.array(0, np.float16)
    a_tiles, b_tiles = memory[:A_SIZE].reshape(A), memory[A_SIZE:SIZE].reshape(B)
    a_parts, b_parts, a_from, b_from = a_tiles.view(PART), b_tiles.view(PART), a.view(PART), b.view(PART)
    warp, steps = cuda.threadIdx.x // 32, a.shape[1] // K
    y, x = cuda.blockIdx.y * M, cuda.blockIdx.x * N
    row, column = warp // WARPS * 64, warp % WARPS * 64
    for s in range(STAGES):
        fetch(a_parts[s], a_from, y, s * (K // 8), M, K // 8)
        fetch(b_parts[s], b_from, s * K, x // 8, K, N // 8)
        cuda.copy_commit()
    cuda.copy_wait(STAGES - 1)  # the tiles of the first step have arrived
    cuda.syncthreads()
    a_part, b_part, acc = T.a(a_tiles[0], row, 0), T.b(b_tiles[0], 0, column), T.zeros()
    for step in range(steps):
        s, after = step % STAGES, (step + 1) % STAGES
        a_next, b_next = T.a(a_tiles[s], row, 16), T.b(b_tiles[s], 16, column)
        acc = T.mma(a_part, b_part, acc)
        cuda.copy_wait(STAGES - 2)  # the tiles of the next step have arrived, and no thread reads those of this one
        cuda.syncthreads()
        a_part, b_part = T.a(a_tiles[after], row, 0), T.b(b_tiles[after], 0, column)
        if step + STAGES < steps:
            fetch(a_parts[s], a_from, y, (step + STAGES) * (K // 8), M, K // 8)
            fetch(b_parts[s], b_from, (step + STAGES) * K, x // 8, K, N // 8)
        cuda.copy_commit()
        acc = T.mma(a_next, b_next, acc)
    T.store(c, y + row, x + column, acc)


def main():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((128, 320)).astype(np.float16), rng.standard_normal((320, 256)).astype(np.float16)
    c = np.zeros((128, 256), np.float32)
    matmul[(c.shape[1] // N, c.shape[0] // M), THREADS, 0, 2 * SIZE](a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    print(f"18_matrix_pipeline: {a.shape} @ {b.shape}: ok")


if __name__ == "__main__":
    main()
