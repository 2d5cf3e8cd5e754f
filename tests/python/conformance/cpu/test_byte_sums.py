"""Sums of small integers that vectors may hold in 16 bits, and those that do not fit."""

import numpy as np
import pytest
from weft import cuda

SIZES = [3, 17, 64, 65, 200, 1000]

# Both limits of a byte, the values next to them, and other values.
ENDS = {np.uint8: [0, 1, 254, 255], np.int8: [-128, -127, 0, 126, 127]}


def picture(dtype, seed, *shape):
    random = np.random.default_rng(seed)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    image = random.integers(low, high, shape, dtype=dtype, endpoint=True)
    return np.where(random.random(shape) < 0.6, random.choice(np.array(ENDS[dtype], dtype), shape), image)


def shifted(image, dy, dx):
    """The neighbors, clamped at the boundaries, as 64-bit integers."""
    rows, columns = image.shape
    y = np.clip(np.arange(rows) + dy, 0, rows - 1)
    x = np.clip(np.arange(columns) + dx, 0, columns - 1)
    return image[np.ix_(y, x)].astype(np.int64)


def launch(kernel, width, height, *args):
    kernel[(-(-width // 32), -(-height // 4)), (32, 4)](*args)


@cuda.jit
def life(cells, out):
    x, y = cuda.grid(2)
    height, width = cells.shape
    if x < width and y < height:
        west, east = (x - 1) % width, (x + 1) % width
        north, south = (y - 1) % height, (y + 1) % height
        alive = (
            cells[north, west] + cells[north, x] + cells[north, east] + cells[y, west]
            + cells[y, east] + cells[south, west] + cells[south, x] + cells[south, east]
        )  # fmt: skip
        out[y, x] = 1 if alive == 3 or (alive == 2 and cells[y, x] == 1) else 0


@pytest.mark.parametrize("width", SIZES)
def test_game_of_life(width):
    cells = np.random.default_rng(width).integers(0, 2, (9, width), dtype=np.uint8)
    out = np.full_like(cells, 7)
    launch(life, width, 9, cells, out)
    around = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
    alive = sum(np.roll(cells, shift, (0, 1)).astype(int) for shift in around)
    np.testing.assert_array_equal(out, (alive == 3) | ((alive == 2) & (cells == 1)))


@cuda.jit
def edges(image, least, strong, angles, sums):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        west, east = max(x - 1, 0), min(x + 1, width - 1)
        north, south = max(y - 1, 0), min(y + 1, height - 1)
        gx = (
            image[north, east] + 2 * image[y, east] + image[south, east]
            - image[north, west] - 2 * image[y, west] - image[south, west]
        )  # fmt: skip
        gy = (
            image[south, west] + 2 * image[south, x] + image[south, east]
            - image[north, west] - 2 * image[north, x] - image[north, east]
        )  # fmt: skip
        strong[y, x] = abs(gx) + abs(gy) >= least
        angles[y, x] = 1 if gx > gy else (2 if gx == gy else 3)
        sums[y, x] = min(max((gx - gy) >> 3, -100), 100)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("width", SIZES)
def test_signed_sums(dtype, width):
    image = picture(dtype, width, 6, width)
    strong, angles, sums = np.zeros((6, width), np.bool_), np.zeros((6, width), np.uint8), np.zeros((6, width), np.int8)
    launch(edges, width, 6, image, 300, strong, angles, sums)

    def at(dy, dx):
        return shifted(image, dy, dx)

    gx = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)
    gy = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)
    np.testing.assert_array_equal(strong, abs(gx) + abs(gy) >= 300)
    np.testing.assert_array_equal(angles, np.select([gx > gy, gx == gy], [1, 2], 3))
    np.testing.assert_array_equal(sums, np.clip((gx - gy) >> 3, -100, 100))


def weighted(weight, divisor):
    """A kernel that adds up five weighted neighbors and compares and divides the sum."""

    @cuda.jit
    def kernel(image, least, more, parts, whole):
        x, y = cuda.grid(2)
        height, width = image.shape
        if x < width and y < height:
            total = 0
            for dx in range(-2, 3):
                total += weight * image[y, min(max(x + dx, 0), width - 1)]
            more[y, x] = total > least
            parts[y, x] = total // divisor
            whole[y, x] = total

    return kernel


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("weight", [1, 25, 26, 51, 52, 128, 129, 257, -26, -52, -1000])
@pytest.mark.parametrize("divisor", [7, 256, 1000])
def test_sums_about_the_largest_that_fit(dtype, weight, divisor):
    width = 200
    image = picture(dtype, 1, 3, width)
    image[0] = np.iinfo(dtype).max
    image[1] = np.iinfo(dtype).min
    total = weight * sum(shifted(image, 0, dx) for dx in range(-2, 3))
    kernel = weighted(weight, divisor)
    for least in (0, 32767, 32768, -32768, -32769, 65535, int(total.max()), int(total.min())):
        more, parts, whole = np.zeros((3, width), np.bool_), np.zeros((3, width), np.uint8), np.zeros((3, width))
        launch(kernel, width, 3, image, least, more, parts, whole)
        np.testing.assert_array_equal(more, total > least)
        np.testing.assert_array_equal(parts, (total // divisor).astype(np.uint8))
        np.testing.assert_array_equal(whole, total)


@cuda.jit
def compared(image, other, out):
    i = cuda.grid(1)
    if i < image.size:
        a, b = image[i] * 3 + 5, other[i] * 2 - 7
        chosen = a - b if image[i] > other[i] else b - a
        if chosen > 32000:
            out[i] = 1
        elif a & b == 4:
            out[i] = 2
        elif (a - 900) * (b - 900) < 0:
            out[i] = 3
        else:
            out[i] = (a + b) % 5 + max(a, b) // 9


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("n", [1, 64, 1000])
def test_other_operations(dtype, n):
    image, other = picture(dtype, 2, n), picture(dtype, 3, n)
    out = np.zeros(n, np.int16)
    compared[-(-n // 128), 128](image, other, out)
    a, b = image.astype(np.int64) * 3 + 5, other.astype(np.int64) * 2 - 7
    chosen = np.where(image > other, a - b, b - a)
    cases = [chosen > 32000, a & b == 4, (a - 900) * (b - 900) < 0]
    np.testing.assert_array_equal(out, np.select(cases, [1, 2, 3], (a + b) % 5 + np.maximum(a, b) // 9))


@cuda.jit
def bits(image, mask, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        left, here, right = image[y, max(x - 1, 0)], image[y, x], image[y, min(x + 1, width - 1)]
        total = left + 2 * here + right
        out[0, y, x] = (total & -4) == 512 or (total & 7) == 3
        out[1, y, x] = ((total | 1) + (here ^ right)) > 255
        out[2, y, x] = ((total & (here - 300)) ^ left) < 9
        out[3, y, x] = ((total | mask) & 0x7FFF) == (here ^ mask)


@pytest.mark.parametrize("dtype", ENDS)
@pytest.mark.parametrize("width", SIZES)
def test_bits_of_sums(dtype, width):
    image = picture(dtype, width, 6, width)
    out = np.full((4, 6, width), 7, np.uint8)
    mask = 1 << 40
    launch(bits, width, 6, image, mask, out)
    left, here, right = (shifted(image, 0, dx) for dx in (-1, 0, 1))
    total = left + 2 * here + right
    expected = [
        ((total & -4) == 512) | ((total & 7) == 3),
        ((total | 1) + (here ^ right)) > 255,
        ((total & (here - 300)) ^ left) < 9,
        ((total | mask) & 0x7FFF) == (here ^ mask),
    ]
    np.testing.assert_array_equal(out, np.array(expected))
