"""Blocks with a short x dimension: tiles of 8, 16 and 32 threads along x, in blocks of that width and others."""

import numpy as np
import pytest
from harness import run
from weft import cuda


@cuda.jit
def product(a, b, out):
    left = cuda.shared.array((16, 16), np.float32)
    right = cuda.shared.array((16, 17), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    i, j = cuda.blockIdx.y * 16 + ty, cuda.blockIdx.x * 16 + tx
    total = np.float32(0)
    for t in range(0, a.shape[1], 16):
        left[ty, tx] = a[i, t + tx] if i < a.shape[0] and t + tx < a.shape[1] else np.float32(0)
        right[ty, tx] = b[t + ty, j] if t + ty < b.shape[0] and j < b.shape[1] else np.float32(0)
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = total


@pytest.mark.parametrize("shape", [(16, 16, 16), (20, 33, 18), (1, 1, 1)])
def test_tiles_of_a_product(shape):
    random = np.random.default_rng(1)
    m, n, k = shape
    a, b = random.integers(-9, 9, (m, k)).astype(np.float32), random.integers(-9, 9, (k, n)).astype(np.float32)
    run(product, (-(-n // 16), -(-m // 16)), (16, 16), a, b, np.zeros((m, n), np.float32))


@cuda.jit
def stepped(x, steps, out):
    tile = cuda.shared.array(1024, np.int32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    t = ty * 8 + tx
    tile[t] = x[t]
    cuda.syncthreads()
    value = tile[t]
    for step in range(steps):
        if ty % (step + 1) == 0 and tx != 3:
            value += tile[ty * 8] * step
        cuda.syncthreads()
        tile[t] = value if tx >= step else -value
        cuda.syncthreads()
    if tx < 5:
        out[t] = tile[t]


@pytest.mark.parametrize("block", [(8, 8), (8, 5), (7, 9), (5, 2, 1), (8, 1), (1, 8)])
def test_rows_of_any_length(block):
    run(stepped, 1, block, np.arange(1024, dtype=np.int32), 6, np.zeros(1024, np.int32))


@cuda.jit
def transposed(x, out):
    tile = cuda.shared.array((32, 33), np.float64)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    for k in range(0, 32, cuda.blockDim.y):
        tile[ty + k, tx] = x[ty + k, tx]
    cuda.syncthreads()
    for k in range(0, 32, cuda.blockDim.y):
        out[ty + k, tx] = tile[tx, ty + k]


@pytest.mark.parametrize("rows", [8, 32])
def test_a_transposed_tile(rows):
    run(transposed, 1, (32, rows), np.arange(1024.0).reshape(32, 32), np.zeros((32, 32)))


@cuda.jit
def spread(plate, steps, out):
    """Steps of a stencil in a tile. In each step, the active threads shrink by one ring."""
    tile = cuda.shared.array((16, 16), np.int64)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    height, width = plate.shape
    x = cuda.blockIdx.x * 10 + tx - 3
    y = cuda.blockIdx.y * 10 + ty - 3
    inside = x >= 0 and x < width and y >= 0 and y < height
    if inside:
        tile[ty, tx] = plate[y, x]
    cuda.syncthreads()
    west = tx - 1 if x > 0 else tx
    east = tx + 1 if x < width - 1 else tx
    north = ty - 1 if y > 0 else ty
    south = ty + 1 if y < height - 1 else ty
    value = np.int64(0)
    for step in range(steps):
        known = inside and step < tx and tx < 15 - step and step < ty and ty < 15 - step
        if known:
            value = tile[ty, tx] * 3 + tile[south, tx] - tile[north, tx] + (tile[ty, east] ^ tile[ty, west])
        cuda.syncthreads()
        if known:
            tile[ty, tx] = value
        cuda.syncthreads()
    if inside and 3 <= tx and tx < 13 and 3 <= ty and ty < 13:
        out[y, x] = value


@pytest.mark.parametrize("shape", [(10, 10), (23, 31), (1, 40), (40, 1)])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_rings_of_a_tile(shape, steps):
    plate = np.random.default_rng(3).integers(-99, 99, shape)
    grid = (-(-shape[1] // 10), -(-shape[0] // 10))
    run(spread, grid, (16, 16), plate, steps, np.full(shape, 7, np.int64))


def part_of_a_row(dtype):
    @cuda.jit
    def kernel(x, low, high, kept, tiles, sums):
        one = cuda.shared.array((16, 16), dtype)
        other = cuda.shared.array((16, 18), dtype)
        read = cuda.shared.array((16, 17), dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        one[ty, tx] = x[ty, tx]
        other[ty, tx + 1] = x[ty, tx]
        read[ty, tx] = x[tx, ty]
        if tx == 0:
            read[ty, 16] = x[ty, 3]
        cuda.syncthreads()
        value = x[ty, 15 - tx]
        for k in range(3):
            # A uniform element of the row, loads of neighbors on both sides, and one array for each store.
            if tx >= low + k and tx < high and ty > k:
                value = read[ty, k] if read[ty - 1, tx] > one[ty, tx] else read[k, tx + 1]
                one[ty, tx] = value
                other[ty, tx + 1] = x[tx, ty]
            cuda.syncthreads()
        if tx > low:
            kept[ty, tx] = value
        tiles[0, ty, tx] = one[ty, tx]
        tiles[1, ty, tx] = other[ty, tx + 1]
        if tx < high and ty != 3:
            sums[ty, tx] += x[ty, tx]

    return kernel


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32, np.float64, np.bool_, np.int64])
@pytest.mark.parametrize("bounds", [(0, 16), (3, 11), (5, 5), (9, 2), (-4, 90)])
def test_a_part_of_each_row(dtype, bounds):
    random = np.random.default_rng(5)
    x = random.integers(0, 100, (16, 16)).astype(dtype)
    kernel = part_of_a_row(dtype)
    tiles = np.zeros((2, 16, 16), dtype)
    run(kernel, 1, (16, 16), x, *bounds, np.zeros((16, 16), dtype), tiles, np.ones((16, 16), dtype))


@cuda.jit
def to_the_left(x, low, out):
    """Threads write next to their own elements, and twice to the same array."""
    tile = cuda.shared.array((16, 17), np.int32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    for column in range(tx, 17, cuda.blockDim.x):
        tile[ty, column] = x[ty, column % 16]
    cuda.syncthreads()
    before = tile[ty, tx + 1] if tx >= low else 0
    cuda.syncthreads()
    if tx >= 1 and tx > low:
        tile[ty, tx - 1] = before
    cuda.syncthreads()
    if tx > low:
        tile[ty, tx] = tile[ty, tx] * 2
        tile[ty, tx] = tile[ty, tx] + 1
    cuda.syncthreads()
    if ty < cuda.blockDim.y - 1 and tx < low:
        tile[ty + 1, tx] += tile[0, tx] if ty > 0 else 5
    cuda.syncthreads()
    out[ty, tx] = tile[ty, tx]


@pytest.mark.parametrize("low", [0, 7, 15, 16])
@pytest.mark.parametrize("block", [(16, 16), (16, 3), (9, 16)])
def test_stores_that_are_not_the_threads_own(low, block):
    run(to_the_left, 1, block, np.arange(256, dtype=np.int32).reshape(16, 16), low, np.zeros((16, 16), np.int32))


def test_a_divisor_that_is_zero_for_threads_without_a_part():
    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array((16, 16), np.int32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        tile[ty, tx] = x[ty, tx]
        cuda.syncthreads()
        if tx > 2 and tx < 14:
            tile[ty, tx] = tile[ty, tx] + 100 // (tx - 2) + 77 % (tx - 2)
        cuda.syncthreads()
        out[ty, tx] = tile[ty, tx]

    run(kernel, 1, (16, 16), np.arange(256, dtype=np.int32).reshape(16, 16), np.zeros((16, 16), np.int32))


@cuda.jit
def plates(steps, power, source, out, columns, rows, border):
    """Steps in a tile as in Rodinia's hotspot: clamped neighbors with reused names, and a flag."""
    tile = cuda.shared.array((16, 16), np.int64)
    new = cuda.shared.array((16, 16), np.int64)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    top = (16 - 2 * steps) * cuda.blockIdx.y - border
    left = (16 - 2 * steps) * cuda.blockIdx.x - border
    y = top + ty
    x = left + tx
    index = columns * y + x
    if y >= 0 and y <= rows - 1 and x >= 0 and x <= columns - 1:
        tile[ty, tx] = source[index]
    cuda.syncthreads()
    first_row = -top if top < 0 else 0
    last_row = rows - 1 - top if top + 15 > rows - 1 else 15
    first = -left if left < 0 else 0
    last = columns - 1 - left if left + 15 > columns - 1 else 15
    north = ty - 1
    south = ty + 1
    west = tx - 1
    east = tx + 1
    north = first_row if north < first_row else north
    south = last_row if south > last_row else south
    west = first if west < first else west
    east = last if east > last else east
    computed = False
    for i in range(steps):
        computed = False
        inner = tx >= i + 1 and tx <= 14 - i and ty >= i + 1 and ty <= 14 - i
        if inner and tx >= first and tx <= last and ty >= first_row and ty <= last_row:
            computed = True
            new[ty, tx] = (
                tile[ty, tx] * 2 + power[index] + tile[south, tx] - tile[north, tx] + tile[ty, east] * tile[ty, west]
            )
        cuda.syncthreads()
        if i == steps - 1:
            break
        if computed:
            tile[ty, tx] = new[ty, tx] % 1000
        cuda.syncthreads()
    if computed:
        out[index] = new[ty, tx]


@pytest.mark.parametrize("shape", [(12, 12), (7, 30), (25, 14)])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_flag_and_names_used_again(shape, steps):
    rows, columns = shape
    power, source = np.random.default_rng(7).integers(-99, 99, (2, rows * columns))
    inner = 16 - 2 * steps
    grid = (-(-columns // inner), -(-rows // inner))
    run(plates, grid, (16, 16), steps, power, source, np.full(rows * columns, 5), columns, rows, steps)


@cuda.jit
def flagged(x, limit, out, told):
    i = cuda.grid(1)
    row = cuda.shared.array(64, np.int64)
    t = cuda.threadIdx.x
    row[t] = -1
    found = False
    seen = False
    count = 0
    for k in range(4):
        found = False
        if i * 3 + k < limit and t > k:
            count += 1 if found else 2
            found = True
            row[t] = x[i] + k
        if found or k == 2:
            count += 10
        cuda.syncthreads()
        if found:
            seen = True
            count += row[t] if not seen else row[t] * 2
        else:
            seen = False
        cuda.syncthreads()
    out[i] = count * 2 + row[t]
    told[i] = (1 if found else 0) + (2 if seen else 0)


@pytest.mark.parametrize("limit", [0, 40, 1000])
def test_flags_that_are_asked_for_again(limit):
    run(flagged, 2, 64, np.arange(128), limit, np.zeros(128, np.int64), np.zeros(128, np.int64))


@cuda.jit
def own_arrays(x, low, out):
    """Local arrays: the index is uniform along x, but each thread has its own element."""
    tile = cuda.shared.array((16, 16), np.int32)
    own = cuda.local.array(3, np.int32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    own[0] = x[ty, tx]
    own[1] = tx * 100
    tile[ty, tx] = -1
    cuda.syncthreads()
    if tx >= low and tx < 14:
        tile[ty, tx] = own[0] + own[1]
    cuda.syncthreads()
    out[ty, tx] = tile[ty, tx]


@pytest.mark.parametrize("low", [0, 5])
def test_arrays_of_the_threads_own(low):
    run(own_arrays, 1, (16, 16), np.arange(256, dtype=np.int32).reshape(16, 16), low, np.zeros((16, 16), np.int32))


@cuda.jit
def greatest(x, a, out):
    i, tx = cuda.grid(1), cuda.threadIdx.x
    tile = cuda.shared.array(16, np.float64)
    tile[tx] = np.maximum(x[i], a % 1.7) if i < x.size else 0.3
    cuda.syncthreads()
    if i < out.size:
        out[i] = tile[(tx + 3) % 16]


@pytest.mark.parametrize("size", [48, 40, 33])
def test_arguments_of_inlined_functions(size):
    run(greatest, 3, 16, np.random.default_rng(2).random(size), 0.6, np.zeros(48))
