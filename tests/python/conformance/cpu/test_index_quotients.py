"""Linear thread indices of a matrix: quotients and remainders by divisors that are known only at launch."""

import numpy as np
import pytest
from harness import run
from weft import cuda

WIDTHS = [0, 1, 2, 31, 32, 33, 100, 255, 256, 1000, 1 << 40]
SHAPES = [(3, 5, 7), (2, 40, 33), (1, 1, 200), (4, 64, 32), (1, 200, 1), (0, 3, 40)]


@cuda.jit
def row_and_column(x, width, out):
    i = cuda.grid(1)
    if i < x.size:
        row = i // width
        column = i % width
        out[i, 0] = row
        out[i, 1] = column
        out[i, 2] = x[i] + row * 3 - column


@cuda.jit
def volume(shape, out, sums):
    i = cuda.grid(1)
    depth, height, width = shape.shape
    if i >= depth * height * width:
        return
    z = i // (height * width)
    rest = i % (height * width)
    y = rest // width
    x = rest % width
    out[i] = shape[z, y, x] * 2
    sums[z, y, x] = i % width + (i // width) % height * 1000 + i // width // height * 1000000


@cuda.jit
def neighbors(image, out):
    i = cuda.grid(1)
    height, width = image.shape
    if i < image.size:
        y = i // width
        x = i % width
        total = 0.0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if 0 <= y + dy and y + dy < height and 0 <= x + dx and x + dx < width:
                    total += image[y + dy, x + dx]
        out[y, x] = total


@cuda.jit
def in_a_branch(x, width, out):
    i = cuda.grid(1)
    if i < out.size:
        value = -1
        if x[i] > 0:
            value = i // width
            if x[i] > 1:
                value = i % width
        out[i] = value


@cuda.jit
def from_an_offset(first, width, out):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < out.shape[0]:
        j = i + first
        out[i, 0] = j // width
        out[i, 1] = j % width
        out[i, 2] = i // width + i % width


@cuda.jit
def blocks_of_64(width, out):
    i = cuda.blockIdx.x * 64 + cuda.threadIdx.x
    if i < out.size:
        out[i] = i // width * 1000 + i % width


@cuda.jit
def counted(width, rows, columns):
    i = cuda.grid(1)
    if i < 5000:
        cuda.atomic.add(rows, i // width, 1)
        cuda.atomic.add(columns, i % width, 1)


@cuda.jit
def planes(out):
    i, plane = cuda.grid(2)
    height, width = out.shape[1], out.shape[2]
    if i < height * width and plane < out.shape[0]:
        out[plane, i // width, i % width] = plane * 100000 + i


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [1, 500, 3000])
def test_rows_and_columns(width, size):
    x = np.arange(size, dtype=np.int64) * 7
    run(row_and_column, (size + 127) // 128, 128, x, width, np.zeros((size, 3), np.int64))


@pytest.mark.parametrize("width", [-40, -1])
def test_negative_widths(width):
    x = np.arange(300, dtype=np.int64)
    run(row_and_column, 3, 100, x, width, np.zeros((300, 3), np.int64))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block", [32, 100, 1024])
def test_volumes(shape, block):
    size = int(np.prod(shape))
    x = np.random.default_rng(size).random(shape)
    run(volume, size // block + 1, block, x, np.zeros(size), np.zeros(shape, np.int64))


@pytest.mark.parametrize("shape", [(5, 7), (40, 33), (3, 400), (300, 2)])
def test_neighbors(shape):
    image = np.random.default_rng(3).integers(0, 100, shape).astype(np.float64)
    run(neighbors, image.size // 128 + 1, 128, image, np.zeros(shape))


@pytest.mark.parametrize("width", [1, 40, 77])
def test_branches(width):
    x = np.random.default_rng(width).integers(0, 3, 1000)
    run(in_a_branch, 10, 128, x, width, np.zeros(1000, np.int64))


@pytest.mark.parametrize("first", [-1000, -1, 0, 5, 1 << 50])
@pytest.mark.parametrize("width", [3, 50])
def test_offsets(first, width):
    run(from_an_offset, 10, 100, first, width, np.zeros((990, 3), np.int64))


@pytest.mark.parametrize("threads", [32, 64, 128])
def test_blocks_of_another_size(threads):
    out = np.zeros(64 * 7 + threads, np.int64)
    if threads > 64:  # else threads of two blocks would write one element
        out = out[: 64 * 3]
        run(blocks_of_64, 1, threads, 40, out)
    else:
        run(blocks_of_64, 8, threads, 40, out)


@pytest.mark.parametrize("width", [33, 64, 700])
def test_atomic_steps(width):
    run(counted, 40, 128, width, np.zeros(5000 // width + 1, np.int32), np.zeros(width, np.int32))


@pytest.mark.parametrize("shape", [(3, 20, 50), (2, 7, 9)])
def test_planes(shape):
    run(planes, (10, 2), (128, 2), np.zeros(shape, np.int64))
