"""Matrix multiplication on tensor cores: tiles of 64 x 32 a warp, and of the block in two shared buffers."""

import numpy as np
from weft import cuda

BLOCK, DEPTH, THREADS = 128, 32, 256  # a block computes 128 x 128 elements, in steps of 32 along k
PART = cuda.uint32x4  # 16 bytes: 8 float16
T = cuda.mma.tile(64, 32, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit(launch_bounds=THREADS)
def matmul(a, b, c):
    a_tiles = cuda.shared.array((2, BLOCK, DEPTH + 8), np.float16)  # 8 elements of padding: no bank conflicts
    b_tiles = cuda.shared.array((2, DEPTH, BLOCK + 8), np.float16)
    a_parts, b_parts, a_from, b_from = a_tiles.view(PART), b_tiles.view(PART), a.view(PART), b.view(PART)
    t, warp = cuda.threadIdx.x, cuda.threadIdx.x // 32
    y, x = cuda.blockIdx.y * BLOCK, cuda.blockIdx.x * BLOCK
    row, column = warp // 4 * 64, warp % 4 * 32
    a_next, b_next = cuda.local.array(2, PART), cuda.local.array(2, PART)
    acc = T.zeros()
    for step in range(a.shape[1] // DEPTH + 1):
        if step < a.shape[1] // DEPTH:
            for n in range(2):
                at = t + n * THREADS
                a_next[n] = a_from[y + at // 4, step * 4 + at % 4]
                b_next[n] = b_from[step * DEPTH + at // 16, x // 8 + at % 16]
        if step > 0:
            for k in range(0, DEPTH, 16):
                a_part = T.a(a_tiles[(step - 1) % 2], row, k)
                acc = T.mma(a_part, T.b(b_tiles[(step - 1) % 2], k, column), acc)
        for n in range(2):
            at = t + n * THREADS
            a_parts[step % 2, at // 4, at % 4] = a_next[n]
            b_parts[step % 2, at // 16, at % 16] = b_next[n]
        cuda.syncthreads()
    T.store(c, y + row, x + column, acc)


def main():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((256, 320)).astype(np.float16)
    b = rng.standard_normal((320, 384)).astype(np.float16)
    c = np.zeros((256, 384), np.float32)
    matmul[(c.shape[1] // BLOCK, c.shape[0] // BLOCK), THREADS](a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    print(f"17_matrix_tiles: {a.shape} @ {b.shape}: ok")


if __name__ == "__main__":
    main()
