"""A product of quantized matrices on tensor cores: 8-bit integers, with a scale for each row and each column."""

import numpy as np
from weft import cuda

M, N, K, STAGES = 128, 256, 64, 4  # a block computes M x N elements, in steps of K
WARPS = N // 64  # in a row: a warp computes 64 x 64
THREADS = M // 64 * WARPS * 32
A, B = (STAGES, M, K + 16), (STAGES, N, K + 16)  # rows have 16 bytes of padding: no bank conflicts
A_SIZE = STAGES * M * (K + 16)
SIZE = A_SIZE + STAGES * N * (K + 16)
PART = cuda.uint32x4  # 16 bytes: 16 int8
T = cuda.mma.tile(64, 64, 32, a=np.int8, b=np.int8, c=np.int32)


@cuda.jit
def fetch(tile, source, row, column, height):
    for n in range(height * K // 16 // THREADS):
        at = n * THREADS + cuda.threadIdx.x
        y, x = at // (K // 16), at % (K // 16)
        cuda.copy_async(tile, (y, x), source, (row + y, column + x))


@cuda.jit(launch_bounds=THREADS)
def matmul(a, b, c):
    """Compute c = a @ b.T. Both matrices are contiguous along k, as 8-bit products need them."""
    memory = cuda.shared.array(0, np.int8)
    a_tiles, b_tiles = memory[:A_SIZE].reshape(A), memory[A_SIZE:SIZE].reshape(B)
    a_parts, b_parts, a_from, b_from = a_tiles.view(PART), b_tiles.view(PART), a.view(PART), b.view(PART)
    warp, steps = cuda.threadIdx.x // 32, a.shape[1] // K
    y, x = cuda.blockIdx.y * M, cuda.blockIdx.x * N
    row, column = warp // WARPS * 64, warp % WARPS * 64
    for s in range(STAGES):
        fetch(a_parts[s], a_from, y, s * (K // 16), M)
        fetch(b_parts[s], b_from, x, s * (K // 16), N)
        cuda.copy_commit()
    cuda.copy_wait(STAGES - 1)  # the tiles of the first step have arrived
    cuda.syncthreads()
    a_part, b_part, acc = T.a(a_tiles[0], row, 0), T.b(b_tiles[0].T, 0, column), T.zeros()
    for step in range(steps):
        s, after = step % STAGES, (step + 1) % STAGES
        a_next, b_next = T.a(a_tiles[s], row, 32), T.b(b_tiles[s].T, 32, column)
        acc = T.mma(a_part, b_part, acc)
        cuda.copy_wait(STAGES - 2)  # the tiles of the next step have arrived, and no thread reads those of this one
        cuda.syncthreads()
        a_part, b_part = T.a(a_tiles[after], row, 0), T.b(b_tiles[after].T, 0, column)
        if step + STAGES < steps:
            fetch(a_parts[s], a_from, y, (step + STAGES) * (K // 16), M)
            fetch(b_parts[s], b_from, x, (step + STAGES) * (K // 16), N)
        cuda.copy_commit()
        acc = T.mma(a_next, b_next, acc)
    T.store(c, y + row, x + column, acc)


def quantized(x):
    """Round the rows of a matrix to 8-bit integers: the integers, and the scale of each row."""
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    return np.rint(x / scale).astype(np.int8), scale


def main():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((128, 320), np.float32), rng.standard_normal((256, 320), np.float32)
    (a, of_a), (b, of_b) = quantized(x), quantized(y)
    c = np.zeros((len(a), len(b)), np.int32)
    matmul[(len(b) // N, len(a) // M), THREADS, 0, SIZE](a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.T.astype(np.int32))
    error = np.abs(c * of_a * of_b.T - x @ y.T).max() / np.abs(x @ y.T).max()
    assert error < 0.02, error
    print(f"24_int8_matmul: {a.shape} @ {b.T.shape}: ok")


if __name__ == "__main__":
    main()
