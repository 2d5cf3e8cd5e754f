"""A 5-point stencil: one thread copies tiles and their borders ahead, with zeros outside of the image."""

import numpy as np
from weft import cuda

H, W, THREADS = 30, 64, 256  # a block computes tiles of H x W elements
BOX = (H + 2, W + 8)  # a border of one element; along rows of four, since boxes begin at multiples of 16 bytes


@cuda.jit
def fetch(tile, source, corner, bar):
    bar.expect(tile.nbytes)
    cuda.copy_async(tile, source[corner[0] - 1, corner[1] - 4], bar)


@cuda.jit
def corner_of(tile, columns):
    """Give the first row and column of a tile."""
    i, j = divmod(tile, columns)
    return i * H, j * W


@cuda.jit(launch_bounds=THREADS)
def blur(source, target):
    tiles = cuda.shared.array((2, *BOX), np.float32)
    full = cuda.barrier(1, 2)
    t, step = cuda.threadIdx.x, cuda.gridDim.x
    rows, columns = (target.shape[0] + H - 1) // H, (target.shape[1] + W - 1) // W
    if t == 0 and cuda.blockIdx.x < rows * columns:
        fetch(tiles[0], source, corner_of(cuda.blockIdx.x, columns), full[0])
    n = 0  # tiles that the block has computed
    for number in range(cuda.blockIdx.x, rows * columns, step):
        if t == 0 and number + step < rows * columns:
            fetch(tiles[(n + 1) % 2], source, corner_of(number + step, columns), full[(n + 1) % 2])
        full[n % 2].wait(n // 2)
        tile, corner = tiles[n % 2], corner_of(number, columns)
        for at in range(t, H * W, THREADS):
            y, x = at // W, at % W
            i, j = corner[0] + y, corner[1] + x
            if i < target.shape[0] and j < target.shape[1]:
                around = tile[y, x + 4] + tile[y + 2, x + 4] + tile[y + 1, x + 3] + tile[y + 1, x + 5]
                target[i, j] = np.float32(0.5) * tile[y + 1, x + 4] + np.float32(0.125) * around
        cuda.syncthreads()  # all threads have read the tile, which the copy after the next one overwrites
        n += 1


def blurred(x):
    x = np.pad(x, 1)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return np.float32(0.5) * x[1:-1, 1:-1] + np.float32(0.125) * around


def main():
    image = np.random.default_rng(0).random((200, 300), np.float32)
    arrays = [cuda.to_device(image), cuda.device_array_like(image)]
    boxes = [cuda.tensor_map(array, BOX) for array in arrays]
    expected, rounds = image, 4
    for n in range(rounds):
        blur[12, THREADS](boxes[n % 2], arrays[(n + 1) % 2])
        expected = blurred(expected)
    np.testing.assert_allclose(arrays[rounds % 2].copy_to_host(), expected, rtol=1e-5)
    print(f"25_stencil_boxes: {rounds} rounds over {image.shape}: ok")


if __name__ == "__main__":
    main()
