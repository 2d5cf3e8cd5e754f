"""Images of bytes: a search by sums of absolute differences, a blur, Sobel's edges, and the game of life on a torus."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random_bytes, sized


def make_sad(cuda):
    @cuda.jit
    def sad(image, pattern, out):
        x, y = cuda.grid(2)
        if y < out.shape[0] and x < out.shape[1]:
            total = 0
            for j in range(pattern.shape[0]):
                for i in range(pattern.shape[1]):
                    total += abs(np.int32(image[y + j, x + i]) - np.int32(pattern[j, i]))
            out[y, x] = total

    return sad


SAD_CPP = """
extern "C" __global__ void peer(const unsigned char* image, const unsigned char* pattern, int* out,
                                int height, int width, int rows, int columns) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int out_height = height - rows + 1, out_width = width - columns + 1;
    if (y < out_height && x < out_width) {
        int total = 0;
        for (int j = 0; j < rows; ++j)
            for (int i = 0; i < columns; ++i)
                total += abs(image[(y + j) * width + x + i] - pattern[j * columns + i]);
        out[y * out_width + x] = total;
    }
}
"""


def sad_work(size: str) -> Work:
    height, width, side = sized(size, (1024, 1024, 16), (30, 43, 5))
    rows, columns = height - side + 1, width - side + 1
    return Work(
        grid=(blocks(columns, 32), blocks(rows, 8)),
        block=(32, 8),
        args=(random_bytes(1, height, width), random_bytes(2, side, side), np.empty((rows, columns), np.int32)),
        outputs=(2,),
        extents=(height, width, side, side),
        n_bytes=height * width + 4 * rows * columns,
        flops=2 * side * side * rows * columns,
    )


def sad_reference(xp, args):
    image, pattern = args[0].astype(xp.int32), args[1].astype(xp.int32)
    rows, columns = args[2].shape
    total = xp.zeros((rows, columns), xp.int32)
    for j in range(pattern.shape[0]):
        for i in range(pattern.shape[1]):
            total += abs(image[j : j + rows, i : i + columns] - pattern[j, i])
    return (total,)


def make_blur(cuda):
    @cuda.jit
    def blur(image, out):
        x, y = cuda.grid(2)
        height, width, channels = image.shape
        if x < width and y < height:
            for c in range(channels):
                total = 0
                for dy in range(-2, 3):
                    for dx in range(-2, 3):
                        row = min(max(y + dy, 0), height - 1)
                        column = min(max(x + dx, 0), width - 1)
                        total += image[row, column, c]
                out[y, x, c] = total // 25

    return blur


def make_blur_narrow(cuda):
    @cuda.jit
    def blur(image, out):
        x, y = cuda.grid(2)
        height, width, channels = image.shape
        if x < width and y < height:
            for c in range(channels):
                total = np.int32(0)
                for dy in range(-2, 3):
                    for dx in range(-2, 3):
                        row = min(max(y + dy, 0), height - 1)
                        column = min(max(x + dx, 0), width - 1)
                        total += image[row, column, c]
                out[y, x, c] = total // 25

    return blur


BLUR_CPP = """
extern "C" __global__ void peer(const unsigned char* image, unsigned char* out, int height, int width, int channels) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        for (int c = 0; c < channels; ++c) {
            int total = 0;
            for (int dy = -2; dy <= 2; ++dy)
                for (int dx = -2; dx <= 2; ++dx) {
                    int row = min(max(y + dy, 0), height - 1);
                    int column = min(max(x + dx, 0), width - 1);
                    total += image[(row * width + column) * channels + c];
                }
            out[(y * width + x) * channels + c] = total / 25;
        }
    }
}
"""


def blur_work(size: str) -> Work:
    height, width = sized(size, (2048, 2048), (21, 37))
    return Work(
        grid=(blocks(width, 16), blocks(height, 16)),
        block=(16, 16),
        args=(random_bytes(3, height, width, 3), np.empty((height, width, 3), np.uint8)),
        outputs=(1,),
        extents=(height, width, 3),
        n_bytes=6 * height * width,
        flops=3 * 25 * height * width,
    )


def blur_reference(xp, args):
    height, width, _ = args[0].shape
    padded = xp.pad(args[0].astype(xp.int32), ((2, 2), (2, 2), (0, 0)), mode="edge")
    total = sum(padded[dy : dy + height, dx : dx + width] for dy in range(5) for dx in range(5))
    return (total // 25,)


def make_sobel(cuda):
    @cuda.jit
    def sobel(image, out):
        x, y = cuda.grid(2)
        height, width = image.shape
        if x >= width or y >= height:
            return
        if x == 0 or y == 0 or x == width - 1 or y == height - 1:
            out[y, x] = 0
            return
        nw = np.int32(image[y - 1, x - 1])
        n = np.int32(image[y - 1, x])
        ne = np.int32(image[y - 1, x + 1])
        w = np.int32(image[y, x - 1])
        e = np.int32(image[y, x + 1])
        sw = np.int32(image[y + 1, x - 1])
        s = np.int32(image[y + 1, x])
        se = np.int32(image[y + 1, x + 1])
        gx = ne + 2 * e + se - nw - 2 * w - sw
        gy = sw + 2 * s + se - nw - 2 * n - ne
        out[y, x] = min(abs(gx) + abs(gy), 255)

    return sobel


SOBEL_CPP = """
extern "C" __global__ void peer(const unsigned char* image, unsigned char* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[y * width + x] = 0;
        return;
    }
    int nw = image[(y - 1) * width + x - 1], n = image[(y - 1) * width + x], ne = image[(y - 1) * width + x + 1];
    int w = image[y * width + x - 1], e = image[y * width + x + 1];
    int sw = image[(y + 1) * width + x - 1], s = image[(y + 1) * width + x], se = image[(y + 1) * width + x + 1];
    int gx = ne + 2 * e + se - nw - 2 * w - sw;
    int gy = sw + 2 * s + se - nw - 2 * n - ne;
    out[y * width + x] = min(abs(gx) + abs(gy), 255);
}
"""


def sobel_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (19, 45))
    return Work(
        grid=(blocks(width, 32), blocks(height, 8)),
        block=(32, 8),
        args=(random_bytes(4, height, width), np.empty((height, width), np.uint8)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=2 * height * width,
        flops=14 * height * width,
    )


def sobel_reference(xp, args):
    a = args[0].astype(xp.int32)
    out = xp.zeros(a.shape, xp.int32)
    columns = a[:-2] + 2 * a[1:-1] + a[2:]
    rows = a[:, :-2] + 2 * a[:, 1:-1] + a[:, 2:]
    out[1:-1, 1:-1] = xp.minimum(abs(columns[:, 2:] - columns[:, :-2]) + abs(rows[2:] - rows[:-2]), 255)
    return (out,)


def make_life(cuda):
    @cuda.jit
    def life(cells, out):
        x, y = cuda.grid(2)
        height, width = cells.shape
        if x < width and y < height:
            west = (x - 1) % width
            east = (x + 1) % width
            north = (y - 1) % height
            south = (y + 1) % height
            alive = (
                cells[north, west] + cells[north, x] + cells[north, east]
                + cells[y, west] + cells[y, east]
                + cells[south, west] + cells[south, x] + cells[south, east]
            )  # fmt: skip
            if alive == 3 or (alive == 2 and cells[y, x] == 1):
                out[y, x] = 1
            else:
                out[y, x] = 0

    return life


LIFE_CPP = """
extern "C" __global__ void peer(const unsigned char* cells, unsigned char* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        int west = (x + width - 1) % width, east = (x + 1) % width;
        int north = (y + height - 1) % height, south = (y + 1) % height;
        int alive = cells[north * width + west] + cells[north * width + x] + cells[north * width + east] +
                    cells[y * width + west] + cells[y * width + east] +
                    cells[south * width + west] + cells[south * width + x] + cells[south * width + east];
        if (alive == 3 || (alive == 2 && cells[y * width + x] == 1))
            out[y * width + x] = 1;
        else
            out[y * width + x] = 0;
    }
}
"""


def life_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (20, 35))
    return Work(
        grid=(blocks(width, 32), blocks(height, 8)),
        block=(32, 8),
        args=(random_bytes(5, height, width) & np.uint8(1), np.empty((height, width), np.uint8)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=2 * height * width,
        flops=10 * height * width,
    )


def life_reference(xp, args):
    cells = args[0]
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    alive = sum(xp.roll(cells, shift, (0, 1)) for shift in shifts)
    return (((alive == 3) | ((alive == 2) & (cells == 1))).astype(xp.uint8),)


CASES = (
    Case(
        "search by absolute differences",
        make_sad,
        "void(uint8[:, ::1], uint8[:, ::1], int32[:, ::1])",
        SAD_CPP,
        sad_work,
        sad_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "blur of interleaved bytes",
        make_blur,
        "void(uint8[:, :, ::1], uint8[:, :, ::1])",
        BLUR_CPP,
        blur_work,
        blur_reference,
        tolerance=0.0,
        wider=True,
        narrow=make_blur_narrow,
    ),
    Case(
        "Sobel of bytes",
        make_sobel,
        "void(uint8[:, ::1], uint8[:, ::1])",
        SOBEL_CPP,
        sobel_work,
        sobel_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "game of life",
        make_life,
        "void(uint8[:, ::1], uint8[:, ::1])",
        LIFE_CPP,
        life_work,
        life_reference,
        tolerance=0.0,
        wider=True,
    ),
)
