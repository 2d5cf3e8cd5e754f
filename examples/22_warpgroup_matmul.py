"""Matrix multiplication on tensor cores by warpgroups: one copies boxes of the matrices ahead, two multiply them."""

import numpy as np
from weft import cuda

M, N, K, STAGES = 128, 256, 64, 4  # a tile of the result has M x N elements, and is computed in steps of K
GROUP = 128  # threads of a warpgroup
WIDTH = 64  # elements in 128 bytes: the width of the swizzle
A, B = (STAGES, M, K), (STAGES, N // WIDTH, K, WIDTH)  # tiles of B are panels
C = (2, 2, M // 2, WIDTH)  # two panels of each warpgroup's part of the result
A_SIZE = STAGES * M * K
AB_SIZE = A_SIZE + STAGES * K * N
SIZE = AB_SIZE + 2 * M * WIDTH
STEP_BYTES = (M + N) * K * 2
ROWS = 16  # blocks that run together compute tiles of this number of rows, which share tiles of A and B in the L2 cache
G = cuda.mma.tile(M // 2, N, K, a=np.float16, b=np.float16, c=np.float32, threads=GROUP)
PANEL = cuda.mma.tile(M // 2, WIDTH, K, a=np.float16, b=np.float16, c=np.float32, threads=GROUP)
HALF, VALUES = M // 2 * N // GROUP // 2, M // 2 * WIDTH // GROUP  # accumulators of half a part, and of a panel


@cuda.jit
def place(tile, rows, columns):
    """Give the first row and column of a tile."""
    first = tile // (ROWS * columns) * ROWS
    height = min(rows - first, ROWS)
    column, row = divmod(tile % (ROWS * columns), height)
    return (first + row) * M, column * N


@cuda.jit(device=True, inline="always")
def store(c, i, j, acc, panels, free, done, phase):
    """Store two panels through shared memory. The copy goes on while the warpgroup multiplies."""
    thread = cuda.threadIdx.x % GROUP
    if thread == 0:
        cuda.copy_wait(read=True)  # the panels before have left shared memory
        free.arrive()
    free.wait(phase)
    PANEL.store(panels[0], 0, 0, acc[:VALUES])
    PANEL.store(panels[1], 0, 0, acc[VALUES:])
    done.arrive()
    if thread == 0:
        done.wait(phase)
        for panel in range(2):
            cuda.copy_async(c[i, j + panel * WIDTH], panels[panel])
        cuda.copy_commit()


@cuda.jit(launch_bounds=3 * GROUP)
def matmul(a, b, c, rows, columns, depth):
    memory = cuda.shared.array(0, np.float16)
    a_tiles = cuda.shared.swizzled(memory[:A_SIZE].reshape(A), 128)
    b_tiles = cuda.shared.swizzled(memory[A_SIZE:AB_SIZE].reshape(B), 128)
    c_tiles = cuda.shared.swizzled(memory[AB_SIZE:SIZE].reshape(C), 128)
    full, empty = cuda.barrier(1, STAGES), cuda.barrier(2, STAGES)
    free, done = cuda.barrier(1, 2), cuda.barrier(GROUP, 2)
    group, thread = divmod(cuda.threadIdx.x, GROUP)
    step = 0  # of all tiles of the block
    if group == 2:
        cuda.set_registers(40)
        if thread == 0:
            for tile in range(cuda.blockIdx.x, rows * columns, cuda.gridDim.x):
                i, j = place(tile, rows, columns)
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
        stores, row = 0, group * (M // 2)  # of the block's tiles; of the group's part of a tile
        for tile in range(cuda.blockIdx.x, rows * columns, cuda.gridDim.x):
            i, j = place(tile, rows, columns)
            acc = G.zeros()
            for _ in range(0, depth, K):
                s, phase = step % STAGES, step // STAGES
                full[s].wait(phase)
                acc = G.mma(G.a(a_tiles[s], row, 0), G.b(b_tiles[s], 0, 0), acc)
                if thread == 0:
                    empty[s].arrive()
                step += 1
            store(c, i + row, j, acc[:HALF], c_tiles[group], free[group], done[group], stores)
            store(c, i + row, j + N // 2, acc[HALF:], c_tiles[group], free[group], done[group], stores + 1)
            stores += 2
        if thread == 0:
            cuda.copy_wait(read=True)


def multiply(a, b, c):
    """Compute c = a @ b, for device arrays of float16 whose extents are multiples of those of a tile."""
    rows, columns = c.shape[0] // M, c.shape[1] // N
    blocks = min(rows * columns, cuda.get_current_device().MULTIPROCESSOR_COUNT)
    a_boxes, b_boxes = cuda.tensor_map(a, (M, K), swizzle=128), cuda.tensor_map(b, (K, WIDTH), swizzle=128)
    c_boxes = cuda.tensor_map(c, (M // 2, WIDTH), swizzle=128)
    matmul[blocks, 3 * GROUP, 0, 2 * SIZE](a_boxes, b_boxes, c_boxes, rows, columns, a.shape[1])


def main():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((384, 320)).astype(np.float16), rng.standard_normal((320, 512)).astype(np.float16)
    c = cuda.device_array((a.shape[0], b.shape[1]), np.float16)
    multiply(cuda.to_device(a), cuda.to_device(b), c)
    np.testing.assert_allclose(c.copy_to_host(), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-2)
    print(f"22_warpgroup_matmul: {a.shape} @ {b.shape}: ok")


if __name__ == "__main__":
    main()
