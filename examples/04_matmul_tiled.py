"""Matrix multiplication in tiles: shared memory, two barriers per tile, and partial tiles at the edges."""

import numpy as np
from weft import cuda

TILE = 16


@cuda.jit
def matmul(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), np.float32)
    b_tile = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = np.float32(0)
    for tile in range((a.shape[1] + TILE - 1) // TILE):
        k = tile * TILE
        a_tile[ty, tx] = a[y, k + tx] if y < a.shape[0] and k + tx < a.shape[1] else 0
        b_tile[ty, tx] = b[k + ty, x] if k + ty < b.shape[0] and x < b.shape[1] else 0
        cuda.syncthreads()  # the tiles are complete
        for i in range(TILE):
            total += a_tile[ty, i] * b_tile[i, tx]
        cuda.syncthreads()  # the tiles may be overwritten
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


def main():
    rng = np.random.default_rng(0)
    a = rng.random((500, 333), np.float32)
    b = rng.random((333, 290), np.float32)
    c = np.zeros((500, 290), np.float32)
    blocks = ((c.shape[1] + TILE - 1) // TILE, (c.shape[0] + TILE - 1) // TILE)
    matmul[blocks, (TILE, TILE)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    print(f"04_matmul_tiled: {a.shape} @ {b.shape}: ok")


if __name__ == "__main__":
    main()
