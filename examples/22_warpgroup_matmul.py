"""Matrix multiplication on tensor cores by warpgroups: one copies boxes of the matrices ahead, two multiply them."""

import numpy as np
from weft import cuda

M, N, K, STAGES = 128, 256, 64, 4  # a tile of the result has M x N elements, and is computed in steps of K
GROUP = 128  # threads of a warpgroup
WIDTH = 64  # elements in 128 bytes: the width of the swizzle
A, B = (STAGES, M, K), (STAGES, N // WIDTH, K, WIDTH)  # tiles of B are panels
A_SIZE = STAGES * M * K
SIZE = A_SIZE + STAGES * K * N
STEP_BYTES = (M + N) * K * 2
ROWS = 16  # blocks that run together compute tiles of this number of rows, which share tiles of A and B in the L2 cache
G = cuda.mma.tile(M // 2, N, K, a=np.float16, b=np.float16, c=np.float32, threads=GROUP)


@cuda.jit
def place(tile, shape):
    """Give the first row and column of a tile."""
    rows, columns = shape[0] // M, shape[1] // N
    first = tile // (ROWS * columns) * ROWS
    height = min(rows - first, ROWS)
    column, row = divmod(tile % (ROWS * columns), height)
    return (first + row) * M, column * N


@cuda.jit(launch_bounds=3 * GROUP)
def matmul(a, b, c, depth):
    memory = cuda.shared.array(0, np.float16)
    a_tiles = cuda.shared.swizzled(memory[:A_SIZE].reshape(A), 128)
    b_tiles = cuda.shared.swizzled(memory[A_SIZE:SIZE].reshape(B), 128)
    full, empty = cuda.barrier(1, STAGES), cuda.barrier(2, STAGES)
    group, thread = divmod(cuda.threadIdx.x, GROUP)
    tiles = c.shape[0] // M * (c.shape[1] // N)
    step = 0  # of all tiles of the block
    if group == 2:
        cuda.set_registers(40)
        if thread == 0:
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                i, j = place(tile, c.shape)
                for k in range(0, depth, K):
                    s, phase = step % STAGES, step // STAGES
                    empty[s].wait(phase + 1)  # both groups have multiplied what the stage held before
                    full[s].expect(STEP_BYTES)
                    cuda.copy_async(a_tiles[s], a[i, k], full[s])
                    for panel in range(N // WIDTH):
                        cuda.copy_async(b_tiles[s][panel], b[k, j + panel * WIDTH], full[s])
                    step += 1
    else:
        cuda.set_registers(232)
        for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
            i, j = place(tile, c.shape)
            acc = G.zeros()
            for _ in range(0, depth, K):
                s, phase = step % STAGES, step // STAGES
                full[s].wait(phase)
                acc = G.mma(G.a(a_tiles[s], group * (M // 2), 0), G.b(b_tiles[s], 0, 0), acc)
                if thread == 0:
                    empty[s].arrive()
                step += 1
            G.store(c, i + group * (M // 2), j, acc)  # meanwhile, the copies of the next tile arrive


def multiply(a, b, c):
    """Compute c = a @ b, for device arrays whose extents are multiples of those of a tile."""
    tiles = c.shape[0] // M * (c.shape[1] // N)
    blocks = min(tiles, cuda.get_current_device().MULTIPROCESSOR_COUNT)
    a_boxes, b_boxes = cuda.tensor_map(a, (M, K), swizzle=128), cuda.tensor_map(b, (K, WIDTH), swizzle=128)
    matmul[blocks, 3 * GROUP, 0, 2 * SIZE](a_boxes, b_boxes, c, a.shape[1])


def main():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((384, 320)).astype(np.float16), rng.standard_normal((320, 512)).astype(np.float16)
    c = cuda.device_array((a.shape[0], b.shape[1]), np.float32)
    multiply(cuda.to_device(a), cuda.to_device(b), c)
    np.testing.assert_allclose(c.copy_to_host(), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    print(f"22_warpgroup_matmul: {a.shape} @ {b.shape}: ok")


if __name__ == "__main__":
    main()
