"""Images of float32: a 7x7 convolution and one pass of a separable one with constant filters, and a rotation."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random, sized

FILTER = np.random.default_rng(10).random((7, 7), dtype=np.float32)
WEIGHTS = np.random.default_rng(11).random(17, dtype=np.float32)
RADIUS = 8
ZERO = np.float32(0)
ONE = np.float32(1)


def initializer(values: np.ndarray) -> str:
    """The exact values as the initializer of a C++ array."""
    return "{" + ", ".join(f"{float(value).hex()}f" for value in values.ravel()) + "}"


def make_convolution(cuda):
    @cuda.jit
    def convolution(image, out):
        weights = cuda.const.array_like(FILTER)
        x, y = cuda.grid(2)
        height, width = image.shape
        if x < width and y < height:
            total = ZERO
            for j in range(7):
                for i in range(7):
                    row = y + j - 3
                    column = x + i - 3
                    if row >= 0 and row < height and column >= 0 and column < width:
                        total += weights[j, i] * image[row, column]
            out[y, x] = total

    return convolution


CONVOLUTION_CPP = f"""
__constant__ float weights[49] = {initializer(FILTER)};
extern "C" __global__ void peer(const float* image, float* out, int height, int width) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {{
        float total = 0.0f;
        for (int j = 0; j < 7; ++j)
            for (int i = 0; i < 7; ++i) {{
                int row = y + j - 3, column = x + i - 3;
                if (row >= 0 && row < height && column >= 0 && column < width)
                    total += weights[j * 7 + i] * image[row * width + column];
            }}
        out[y * width + x] = total;
    }}
}}
"""


def convolution_work(size: str) -> Work:
    height, width = sized(size, (2048, 2048), (20, 41))
    return Work(
        grid=(blocks(width, 16), blocks(height, 16)),
        block=(16, 16),
        args=(random(12, height, width), np.empty((height, width), np.float32)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=8 * height * width,
        flops=2 * 49 * height * width,
    )


def convolution_reference(xp, args):
    height, width = args[0].shape
    padded = xp.pad(args[0].astype(xp.float64), 3)
    total = xp.zeros((height, width))
    for j in range(7):
        for i in range(7):
            total += float(FILTER[j, i]) * padded[j : j + height, i : i + width]
    return (total,)


def make_separable(cuda):
    @cuda.jit
    def rows_pass(image, out):
        weights = cuda.const.array_like(WEIGHTS)
        tile = cuda.shared.array((4, 128 + 2 * RADIUS), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x = cuda.blockIdx.x * 128 + tx
        y = cuda.blockIdx.y * 4 + ty
        height, width = image.shape
        for i in range(tx, 128 + 2 * RADIUS, 128):
            column = cuda.blockIdx.x * 128 + i - RADIUS
            if y < height and column >= 0 and column < width:
                tile[ty, i] = image[y, column]
            else:
                tile[ty, i] = ZERO
        cuda.syncthreads()
        if x < width and y < height:
            total = ZERO
            for k in range(2 * RADIUS + 1):
                total += weights[k] * tile[ty, tx + k]
            out[y, x] = total

    return rows_pass


SEPARABLE_CPP = f"""
#define RADIUS {RADIUS}
__constant__ float weights[2 * RADIUS + 1] = {initializer(WEIGHTS)};
extern "C" __global__ void peer(const float* image, float* out, int height, int width) {{
    __shared__ float tile[4][128 + 2 * RADIUS];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 128 + tx, y = blockIdx.y * 4 + ty;
    for (int i = tx; i < 128 + 2 * RADIUS; i += 128) {{
        int column = blockIdx.x * 128 + i - RADIUS;
        tile[ty][i] = y < height && column >= 0 && column < width ? image[y * width + column] : 0.0f;
    }}
    __syncthreads();
    if (x < width && y < height) {{
        float total = 0.0f;
        for (int k = 0; k <= 2 * RADIUS; ++k) total += weights[k] * tile[ty][tx + k];
        out[y * width + x] = total;
    }}
}}
"""


def separable_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (7, 150), cpu=(2048, 2048))
    return Work(
        grid=(blocks(width, 128), blocks(height, 4)),
        block=(128, 4),
        args=(random(13, height, width), np.empty((height, width), np.float32)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=8 * height * width,
        flops=2 * 17 * height * width,
    )


def separable_reference(xp, args):
    width = args[0].shape[1]
    padded = xp.pad(args[0].astype(xp.float64), ((0, 0), (RADIUS, RADIUS)))
    return (sum(float(WEIGHTS[k]) * padded[:, k : k + width] for k in range(2 * RADIUS + 1)),)


def make_rotation(cuda):
    @cuda.jit
    def rotate(image, cosine, sine, out):
        x, y = cuda.grid(2)
        height, width = image.shape
        if x < width and y < height:
            dx = np.float32(x - width // 2)
            dy = np.float32(y - height // 2)
            sx = cosine * dx - sine * dy + np.float32(width // 2)
            sy = sine * dx + cosine * dy + np.float32(height // 2)
            left = math.floor(sx)
            top = math.floor(sy)
            fx = np.float32(sx - left)
            fy = np.float32(sy - top)
            x0 = min(max(int(left), 0), width - 1)
            y0 = min(max(int(top), 0), height - 1)
            x1 = min(max(int(left) + 1, 0), width - 1)
            y1 = min(max(int(top) + 1, 0), height - 1)
            upper = (ONE - fx) * image[y0, x0] + fx * image[y0, x1]
            lower = (ONE - fx) * image[y1, x0] + fx * image[y1, x1]
            out[y, x] = (ONE - fy) * upper + fy * lower

    return rotate


ROTATION_CPP = """
extern "C" __global__ void peer(const float* image, float cosine, float sine, float* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float dx = x - width / 2, dy = y - height / 2;
        float sx = cosine * dx - sine * dy + width / 2, sy = sine * dx + cosine * dy + height / 2;
        float left = floorf(sx), top = floorf(sy);
        float fx = sx - left, fy = sy - top;
        int x0 = min(max((int)left, 0), width - 1), x1 = min(max((int)left + 1, 0), width - 1);
        int y0 = min(max((int)top, 0), height - 1), y1 = min(max((int)top + 1, 0), height - 1);
        float upper = (1.0f - fx) * image[y0 * width + x0] + fx * image[y0 * width + x1];
        float lower = (1.0f - fx) * image[y1 * width + x0] + fx * image[y1 * width + x1];
        out[y * width + x] = (1.0f - fy) * upper + fy * lower;
    }
}
"""


def rotation_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (30, 43), cpu=(2048, 2048))
    angle = 0.5
    return Work(
        grid=(blocks(width, 32), blocks(height, 8)),
        block=(32, 8),
        args=(
            random(14, height, width), np.float32(math.cos(angle)), np.float32(math.sin(angle)),
            np.empty((height, width), np.float32),
        ),
        outputs=(3,),
        extents=(height, width),
        n_bytes=8 * height * width,
        flops=20 * height * width,
    )  # fmt: skip


def rotation_reference(xp, args):
    image, cosine, sine, out = args
    height, width = out.shape
    dx, dy = xp.arange(width)[None, :] - width // 2, xp.arange(height)[:, None] - height // 2
    sx = float(cosine) * dx - float(sine) * dy + width // 2
    sy = float(sine) * dx + float(cosine) * dy + height // 2
    left, top = xp.floor(sx), xp.floor(sy)
    fx, fy = sx - left, sy - top
    x0, x1 = (xp.clip(left + k, 0, width - 1).astype(xp.int64) for k in (0, 1))
    y0, y1 = (xp.clip(top + k, 0, height - 1).astype(xp.int64) for k in (0, 1))
    upper = (1 - fx) * image[y0, x0] + fx * image[y0, x1]
    lower = (1 - fx) * image[y1, x0] + fx * image[y1, x1]
    return ((1 - fy) * upper + fy * lower,)


CASES = (
    Case(
        "convolution, 7x7",
        make_convolution,
        "void(float32[:, ::1], float32[:, ::1])",
        CONVOLUTION_CPP,
        convolution_work,
        convolution_reference,
    ),
    Case(
        "convolution of rows, 17 wide",
        make_separable,
        "void(float32[:, ::1], float32[:, ::1])",
        SEPARABLE_CPP,
        separable_work,
        separable_reference,
    ),
    Case(
        "rotation, bilinear",
        make_rotation,
        "void(float32[:, ::1], float32, float32, float32[:, ::1])",
        ROTATION_CPP,
        rotation_work,
        rotation_reference,
        tolerance=4e-3,  # a coordinate has 24 bits, 12 of them before the point
    ),
)
