"""Images of bytes: 7x7 windows over constant tables with a bounds test for each neighbor, and clamped 5x5 blurs."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random_bytes, sized

GAUSS = np.exp(-(np.arange(-3, 4)[:, None] ** 2 + np.arange(-3, 4)[None, :] ** 2) / 4.5).astype(np.float32)
HALF = np.float32(0.5)
ZERO = np.float32(0)

LAPLACE = (
    0, 0, 1, 1, 1, 0, 0,
    0, 1, 3, 3, 3, 1, 0,
    1, 3, 0, -7, 0, 3, 1,
    1, 3, -7, -24, -7, 3, 1,
    1, 3, 0, -7, 0, 3, 1,
    0, 1, 3, 3, 3, 1, 0,
    0, 0, 1, 1, 1, 0, 0,
)  # fmt: skip

BINOMIAL = np.array([1, 4, 6, 4, 1], np.int32)


def make_gauss(cuda):
    @cuda.jit
    def gauss(image, out):
        weights = cuda.const.array_like(GAUSS)
        x, y = cuda.grid(2)
        height, width = image.shape
        if x >= width or y >= height:
            return
        total = ZERO
        norm = ZERO
        for dy in range(-3, 4):
            for dx in range(-3, 4):
                row = y + dy
                column = x + dx
                if 0 <= row < height and 0 <= column < width:
                    weight = weights[dy + 3, dx + 3]
                    total += weight * image[row, column]
                    norm += weight
        out[y, x] = np.uint8(total / norm + HALF)

    return gauss


GAUSS_CPP = f"""
__constant__ float weights[7][7] = {{{", ".join(f"{float(weight).hex()}f" for weight in GAUSS.ravel())}}};
extern "C" __global__ void peer(const unsigned char* image, unsigned char* out, int height, int width) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float total = 0.0f, norm = 0.0f;
    for (int dy = -3; dy <= 3; ++dy)
        for (int dx = -3; dx <= 3; ++dx) {{
            int row = y + dy, column = x + dx;
            if (row >= 0 && row < height && column >= 0 && column < width) {{
                float weight = weights[dy + 3][dx + 3];
                total += weight * image[row * width + column];
                norm += weight;
            }}
        }}
    out[y * width + x] = (unsigned char)(total / norm + 0.5f);
}}
"""


def gauss_work(size: str) -> Work:
    height, width = sized(size, (2160, 3840), (21, 45), cpu=(1080, 1920))
    return Work(
        grid=(blocks(width, 16), blocks(height, 16)),
        block=(16, 16),
        args=(random_bytes(100, height, width), np.empty((height, width), np.uint8)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=2 * height * width,
        flops=3 * 49 * height * width,
    )


def gauss_reference(xp, args):
    image, _ = args
    height, width = image.shape
    padded, inside = xp.pad(image.astype(xp.float64), 3), xp.pad(xp.ones((height, width)), 3)
    total, norm = xp.zeros((height, width)), xp.zeros((height, width))
    for j in range(7):
        for i in range(7):
            weight = float(GAUSS[j, i])
            total += weight * padded[j : j + height, i : i + width]
            norm += weight * inside[j : j + height, i : i + width]
    return (xp.floor(total / norm + 0.5),)


def make_laplace(cuda):
    @cuda.jit
    def laplace(image, width, height, out):
        i = cuda.grid(1)
        if i < width * height:
            y = i // width
            x = i % width
            response = 0
            for k in range(49):
                ny = y + k // 7 - 3
                nx = x + k % 7 - 3
                if ny < 0 or ny >= height or nx < 0 or nx >= width:
                    continue
                response += LAPLACE[k] * image[ny * width + nx]
            out[i] = response

    return laplace


LAPLACE_CPP = f"""
__constant__ int table[49] = {{{", ".join(map(str, LAPLACE))}}};
extern "C" __global__ void peer(const unsigned char* image, int width, int height, int* out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) {{
        int y = i / width, x = i % width, response = 0;
        for (int k = 0; k < 49; ++k) {{
            int ny = y + k / 7 - 3, nx = x + k % 7 - 3;
            if (ny < 0 || ny >= height || nx < 0 || nx >= width) continue;
            response += table[k] * image[ny * width + nx];
        }}
        out[i] = response;
    }}
}}
"""


def laplace_work(size: str) -> Work:
    height, width = sized(size, (2048, 2048), (19, 37))
    return Work(
        grid=(blocks(height * width, 256),),
        block=(256,),
        args=(
            random_bytes(101, height * width), np.int32(width), np.int32(height), np.empty(height * width, np.int32),
        ),
        outputs=(3,),
        extents=(),
        n_bytes=5 * height * width,
        flops=2 * 49 * height * width,
    )  # fmt: skip


def laplace_reference(xp, args):
    image, width, height, _ = args
    width, height = int(width), int(height)
    padded = xp.pad(image.reshape(height, width).astype(xp.int64), 3)
    total = xp.zeros((height, width), xp.int64)
    for k in range(49):
        total += LAPLACE[k] * padded[k // 7 : k // 7 + height, k % 7 : k % 7 + width]
    return (total.ravel(),)


def make_binomial(cuda):
    @cuda.jit(device=True)
    def clamp(value, low, high):
        return max(low, min(value, high))

    @cuda.jit
    def binomial(image, out):
        weights = cuda.const.array_like(BINOMIAL)
        x, y = cuda.grid(2)
        height, width = image.shape
        if x < width and y < height:
            total = 128
            for j in range(5):
                for i in range(5):
                    pixel = image[clamp(y + j - 2, 0, height - 1), clamp(x + i - 2, 0, width - 1)]
                    total += weights[j] * weights[i] * pixel
            out[y, x] = total >> 8

    return binomial


BINOMIAL_CPP = """
__constant__ int weights[5] = {1, 4, 6, 4, 1};
__device__ int clamp(int value, int low, int high) { return max(low, min(value, high)); }
extern "C" __global__ void peer(const unsigned char* image, unsigned char* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        int total = 128;
        for (int j = 0; j < 5; ++j)
            for (int i = 0; i < 5; ++i) {
                int pixel = image[clamp(y + j - 2, 0, height - 1) * width + clamp(x + i - 2, 0, width - 1)];
                total += weights[j] * weights[i] * pixel;
            }
        out[y * width + x] = total >> 8;
    }
}
"""


def binomial_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (23, 50), cpu=(3072, 3072))
    return Work(
        grid=(blocks(width, 32), blocks(height, 8)),
        block=(32, 8),
        args=(random_bytes(102, height, width), np.empty((height, width), np.uint8)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=2 * height * width,
        flops=3 * 25 * height * width,
    )


def binomial_reference(xp, args):
    image, _ = args
    height, width = image.shape
    padded = xp.pad(image.astype(xp.int64), 2, mode="edge")
    total = xp.full((height, width), 128, xp.int64)
    for j in range(5):
        for i in range(5):
            total += int(BINOMIAL[j] * BINOMIAL[i]) * padded[j : j + height, i : i + width]
    return (total >> 8,)


def make_rgba(cuda):
    @cuda.jit
    def blur_rgba(source, target, rows, columns):
        column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        if row >= rows or column >= columns:
            return
        red = ZERO
        green = ZERO
        blue = ZERO
        for r in range(row - 2, row + 3):
            if r < 0:
                rr = 0
            elif r >= rows:
                rr = rows - 1
            else:
                rr = r
            for c in range(column - 2, column + 3):
                cc = c
                if cc < 0:
                    cc = 0
                if cc > columns - 1:
                    cc = columns - 1
                red += source[rr, cc, 0]
                green += source[rr, cc, 1]
                blue += source[rr, cc, 2]
        target[row, column, 0] = np.uint8(red / np.float32(25))
        target[row, column, 1] = np.uint8(green / np.float32(25))
        target[row, column, 2] = np.uint8(blue / np.float32(25))
        target[row, column, 3] = source[row, column, 3]

    return blur_rgba


RGBA_CPP = """
extern "C" __global__ void peer(const unsigned char* source, unsigned char* target, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float red = 0.0f, green = 0.0f, blue = 0.0f;
    for (int r = row - 2; r <= row + 2; ++r) {
        int rr = r < 0 ? 0 : r >= rows ? rows - 1 : r;
        for (int c = column - 2; c <= column + 2; ++c) {
            int cc = c;
            if (cc < 0) cc = 0;
            if (cc > columns - 1) cc = columns - 1;
            red += source[(rr * columns + cc) * 4];
            green += source[(rr * columns + cc) * 4 + 1];
            blue += source[(rr * columns + cc) * 4 + 2];
        }
    }
    target[(row * columns + column) * 4] = (unsigned char)(red / 25.0f);
    target[(row * columns + column) * 4 + 1] = (unsigned char)(green / 25.0f);
    target[(row * columns + column) * 4 + 2] = (unsigned char)(blue / 25.0f);
    target[(row * columns + column) * 4 + 3] = source[(row * columns + column) * 4 + 3];
}
"""


def rgba_work(size: str) -> Work:
    height, width = sized(size, (2160, 3840), (17, 35), cpu=(1080, 1920))
    return Work(
        grid=(blocks(width, 16), blocks(height, 8)),
        block=(16, 8),
        args=(
            random_bytes(103, height, width, 4), np.empty((height, width, 4), np.uint8),
            np.int32(height), np.int32(width),
        ),
        outputs=(1,),
        extents=(),
        n_bytes=8 * height * width,
        flops=75 * height * width,
    )  # fmt: skip


def rgba_reference(xp, args):
    source, _, height, width = args
    height, width = int(height), int(width)
    padded = xp.pad(source.astype(xp.int64), ((2, 2), (2, 2), (0, 0)), mode="edge")
    total = xp.zeros((height, width, 4), xp.int64)
    for j in range(5):
        for i in range(5):
            total += padded[j : j + height, i : i + width]
    blurred = total // 25
    blurred[:, :, 3] = source[:, :, 3]
    return (blurred,)


CASES = (
    Case(
        "Gauss 7x7 of bytes, normalized at the borders",
        make_gauss,
        "void(uint8[:, ::1], uint8[:, ::1])",
        GAUSS_CPP,
        gauss_work,
        gauss_reference,
        tolerance=6e-3,  # rounding to the nearest byte
    ),
    Case(
        "Laplace 7x7 of bytes, a tuple of weights",
        make_laplace,
        "void(uint8[::1], int32, int32, int32[::1])",
        LAPLACE_CPP,
        laplace_work,
        laplace_reference,
        tolerance=0.0,
    ),
    Case(
        "binomial blur 5x5 of bytes",
        make_binomial,
        "void(uint8[:, ::1], uint8[:, ::1])",
        BINOMIAL_CPP,
        binomial_work,
        binomial_reference,
        tolerance=0.0,
    ),
    Case(
        "box blur 5x5 of RGBA",
        make_rgba,
        "void(uint8[:, :, ::1], uint8[:, :, ::1], int32, int32)",
        RGBA_CPP,
        rgba_work,
        rgba_reference,
        tolerance=0.0,
    ),
)
