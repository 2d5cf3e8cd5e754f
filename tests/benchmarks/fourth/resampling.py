"""Bytes between pixels: a motion search in steps of half a pixel, and an affine map of a color image."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, random_bytes, sized

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
BLOCK = 16  # the pixels on each side of a macroblock
REACH = 4  # pixels in each direction
CHOICES = 4 * REACH + 1  # the offsets of half pixels in each direction
WINDOW = BLOCK + 2 * REACH + 1


def make_motion(cuda):
    @cuda.jit
    def motion(frame, previous, sads, vectors):
        current = cuda.shared.array((BLOCK, BLOCK), np.int32)
        window = cuda.shared.array((WINDOW, WINDOW), np.int32)
        best = cuda.shared.array(1, np.int32)
        height, width = frame.shape
        tid = cuda.threadIdx.x
        top = cuda.blockIdx.y * BLOCK
        left = cuda.blockIdx.x * BLOCK
        if tid == 0:
            best[0] = 0x7FFFFFFF
        for k in range(tid, BLOCK * BLOCK, cuda.blockDim.x):
            current[k // BLOCK, k % BLOCK] = frame[top + k // BLOCK, left + k % BLOCK]
        for k in range(tid, WINDOW * WINDOW, cuda.blockDim.x):
            row = min(max(top - REACH + k // WINDOW, 0), height - 1)
            column = min(max(left - REACH + k % WINDOW, 0), width - 1)
            window[k // WINDOW, k % WINDOW] = previous[row, column]
        cuda.syncthreads()
        if tid < CHOICES * CHOICES:
            row = tid // CHOICES // 2
            column = tid % CHOICES // 2
            down = tid // CHOICES % 2
            right = tid % CHOICES % 2
            total = 0
            for y in range(BLOCK):
                for x in range(BLOCK):
                    above = window[row + y, column + x] * (2 - right) + window[row + y, column + x + 1] * right
                    below = window[row + y + 1, column + x] * (2 - right) + window[row + y + 1, column + x + 1] * right
                    value = (above * (2 - down) + below * down + 2) >> 2
                    total += abs(current[y, x] - value)
            macroblock = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
            sads[macroblock, tid] = total
            cuda.atomic.min(best, 0, total * 512 + tid)
        cuda.syncthreads()
        if tid == 0:
            choice = best[0] % 512
            vectors[cuda.blockIdx.y, cuda.blockIdx.x, 0] = choice % CHOICES - 2 * REACH
            vectors[cuda.blockIdx.y, cuda.blockIdx.x, 1] = choice // CHOICES - 2 * REACH

    return motion


MOTION_CPP = f"""
#define BLOCK {BLOCK}
#define REACH {REACH}
#define CHOICES {CHOICES}
#define WINDOW {WINDOW}
extern "C" __global__ void peer(const unsigned char* frame, const unsigned char* previous, unsigned short* sads,
                                signed char* vectors, int height, int width) {{
    __shared__ int current[BLOCK][BLOCK], window[WINDOW][WINDOW], best;
    int tid = threadIdx.x, top = blockIdx.y * BLOCK, left = blockIdx.x * BLOCK;
    int macroblock = blockIdx.y * gridDim.x + blockIdx.x;
    if (tid == 0) best = 0x7fffffff;
    for (int k = tid; k < BLOCK * BLOCK; k += blockDim.x)
        current[k / BLOCK][k % BLOCK] = frame[(top + k / BLOCK) * width + left + k % BLOCK];
    for (int k = tid; k < WINDOW * WINDOW; k += blockDim.x) {{
        int row = min(max(top - REACH + k / WINDOW, 0), height - 1);
        int column = min(max(left - REACH + k % WINDOW, 0), width - 1);
        window[k / WINDOW][k % WINDOW] = previous[row * width + column];
    }}
    __syncthreads();
    if (tid < CHOICES * CHOICES) {{
        int row = tid / CHOICES / 2, column = tid % CHOICES / 2;
        int down = tid / CHOICES % 2, right = tid % CHOICES % 2, total = 0;
        for (int y = 0; y < BLOCK; ++y)
            for (int x = 0; x < BLOCK; ++x) {{
                int above = window[row + y][column + x] * (2 - right) + window[row + y][column + x + 1] * right;
                int below = window[row + y + 1][column + x] * (2 - right)
                    + window[row + y + 1][column + x + 1] * right;
                int value = (above * (2 - down) + below * down + 2) >> 2;
                total += abs(current[y][x] - value);
            }}
        sads[macroblock * CHOICES * CHOICES + tid] = total;
        atomicMin(&best, total * 512 + tid);
    }}
    __syncthreads();
    if (tid == 0) {{
        int choice = best % 512;
        vectors[2 * macroblock] = choice % CHOICES - 2 * REACH;
        vectors[2 * macroblock + 1] = choice / CHOICES - 2 * REACH;
    }}
}}
"""


def motion_work(size: str) -> Work:
    height, width = sized(size, (1088, 1920), (48, 80), cpu=(288, 352))
    rows, columns = height // BLOCK, width // BLOCK
    previous = random_bytes(340, height, width)
    noise = np.random.default_rng(341).integers(-20, 21, (height, width))
    frame = np.clip(np.roll(previous, (2, -3), axis=(0, 1)) + noise, 0, 255).astype(np.uint8)
    sads = np.empty((rows * columns, CHOICES * CHOICES), np.uint16)
    return Work(
        grid=(columns, rows),
        block=(blocks(CHOICES * CHOICES, 32) * 32,),
        args=(frame, previous, sads, np.empty((rows, columns, 2), np.int8)),
        outputs=(2, 3),
        extents=(height, width),
        n_bytes=2 * height * width + 2 * sads.size,
        flops=12 * sads.size * BLOCK * BLOCK,
    )


def motion_reference(xp, args):
    frame, previous, sads, vectors = args
    height, width = frame.shape
    padded = xp.pad(previous.astype(xp.int32), ((REACH, REACH + 1), (REACH, REACH + 1)), mode="edge")
    rows, columns = vectors.shape[:2]
    expected = xp.zeros(sads.shape, xp.int32)
    for choice in range(CHOICES * CHOICES):
        (row, down), (column, right) = divmod(choice // CHOICES, 2), divmod(choice % CHOICES, 2)
        a, b, c, d = (padded[row + j :, column + i :][:height, :width] for j in (0, 1) for i in (0, 1))
        value = ((a * (2 - right) + b * right) * (2 - down) + (c * (2 - right) + d * right) * down + 2) >> 2
        absolute = abs(frame.astype(xp.int32) - value).reshape(rows, BLOCK, columns, BLOCK)
        expected[:, choice] = absolute.sum(axis=(1, 3)).ravel()
    best = expected.argmin(axis=1).reshape(rows, columns)
    return expected, xp.stack([best % CHOICES - 2 * REACH, best // CHOICES - 2 * REACH], axis=2)


CLAMP, WRAP, REFLECT, CONSTANT = range(4)


def make_affine(cuda):
    @cuda.jit(device=True)
    def source_index(i, n, mode):
        if mode == CLAMP:
            return min(max(i, 0), n - 1)
        if mode == WRAP:
            return i % n
        if mode == REFLECT:
            i %= 2 * n
            return i if i < n else 2 * n - 1 - i
        return i if i >= 0 and i < n else -1

    @cuda.jit(device=True)
    def pixel(image, row, column, channel, background):
        if row < 0 or column < 0:
            return background
        return np.float32(image[row, column, channel])

    @cuda.jit
    def affine(image, matrix, mode, background, out):
        x, y = cuda.grid(2)
        height, width, channels = image.shape
        if x >= out.shape[1] or y >= out.shape[0]:
            return
        column = matrix[0, 0] * np.float32(x) + matrix[0, 1] * np.float32(y) + matrix[0, 2]
        row = matrix[1, 0] * np.float32(x) + matrix[1, 1] * np.float32(y) + matrix[1, 2]
        left = int(math.floor(column))  # noqa: RUF046 (a float in numba.cuda)
        top = int(math.floor(row))  # noqa: RUF046 (a float in numba.cuda)
        fx = column - np.float32(left)
        fy = row - np.float32(top)
        x0 = source_index(left, width, mode)
        x1 = source_index(left + 1, width, mode)
        y0 = source_index(top, height, mode)
        y1 = source_index(top + 1, height, mode)
        for c in range(channels):
            above = (ONE - fx) * pixel(image, y0, x0, c, background) + fx * pixel(image, y0, x1, c, background)
            below = (ONE - fx) * pixel(image, y1, x0, c, background) + fx * pixel(image, y1, x1, c, background)
            value = (ONE - fy) * above + fy * below
            out[y, x, c] = np.uint8(value + HALF)

    return affine


AFFINE_CPP = """
__device__ int source_index(int i, int n, int mode) {
    if (mode == 0) return min(max(i, 0), n - 1);
    if (mode == 1) {
        i %= n;
        return i < 0 ? i + n : i;
    }
    if (mode == 2) {
        i %= 2 * n;
        if (i < 0) i += 2 * n;
        return i < n ? i : 2 * n - 1 - i;
    }
    return i >= 0 && i < n ? i : -1;
}

__device__ float pixel(const unsigned char* image, int row, int column, int channel, float background, int width,
                       int channels) {
    if (row < 0 || column < 0) return background;
    return image[(row * width + column) * channels + channel];
}

extern "C" __global__ void peer(const unsigned char* image, const float* matrix, int mode, float background,
                                unsigned char* out, int height, int width, int channels, int out_height,
                                int out_width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= out_width || y >= out_height) return;
    float column = matrix[0] * x + matrix[1] * y + matrix[2];
    float row = matrix[3] * x + matrix[4] * y + matrix[5];
    int left = (int)floorf(column), top = (int)floorf(row);
    float fx = column - left, fy = row - top;
    int x0 = source_index(left, width, mode), x1 = source_index(left + 1, width, mode);
    int y0 = source_index(top, height, mode), y1 = source_index(top + 1, height, mode);
    for (int c = 0; c < channels; ++c) {
        float above = (1.0f - fx) * pixel(image, y0, x0, c, background, width, channels)
            + fx * pixel(image, y0, x1, c, background, width, channels);
        float below = (1.0f - fx) * pixel(image, y1, x0, c, background, width, channels)
            + fx * pixel(image, y1, x1, c, background, width, channels);
        float value = (1.0f - fy) * above + fy * below;
        out[(y * out_width + x) * channels + c] = (unsigned char)(value + 0.5f);
    }
}
"""


def affine_work(size: str) -> Work:
    height, width, rows, columns = sized(size, (2048, 2048, 2160, 3840), (45, 61, 70, 101), (512, 512, 720, 1280))
    # A rotation by 20 degrees about the middle; the corners of the output are outside of the image.
    cosine, sine = 0.9396926, 0.3420201
    shift_x = width / 2 - cosine * columns / 2 + sine * rows / 2
    shift_y = height / 2 - sine * columns / 2 - cosine * rows / 2
    matrix = np.array([[cosine, -sine, shift_x], [sine, cosine, shift_y]], np.float32)
    image = random_bytes(342, height, width, 3)
    return Work(
        grid=(blocks(columns, 32), blocks(rows, 8)),
        block=(32, 8),
        args=(image, matrix, np.int32(REFLECT), np.float32(90), np.empty((rows, columns, 3), np.uint8)),
        outputs=(4,),
        extents=(height, width, 3, rows, columns),
        n_bytes=image.nbytes + 3 * rows * columns,
        flops=30 * rows * columns,
    )


def affine_reference(xp, args):
    image, matrix, mode, background, out = args
    matrix = matrix.astype(xp.float64)
    y, x = xp.meshgrid(*[xp.arange(extent) for extent in out.shape[:2]], indexing="ij")
    column, row = (matrix[k, 0] * x + matrix[k, 1] * y + matrix[k, 2] for k in (0, 1))
    left, top = xp.floor(column).astype(xp.int64), xp.floor(row).astype(xp.int64)
    fx, fy = (column - left)[..., None], (row - top)[..., None]

    def index(i, n):
        if int(mode) == CLAMP:
            return xp.clip(i, 0, n - 1)
        if int(mode) == WRAP:
            return i % n
        if int(mode) == REFLECT:
            return xp.minimum(i % (2 * n), 2 * n - 1 - i % (2 * n))
        return xp.where((i >= 0) & (i < n), i, -1)

    def pixel(j, i):
        j, i = index(j, image.shape[0]), index(i, image.shape[1])
        return xp.where(((j < 0) | (i < 0))[..., None], float(background), image[j, i].astype(xp.float64))

    above = (1 - fx) * pixel(top, left) + fx * pixel(top, left + 1)
    below = (1 - fx) * pixel(top + 1, left) + fx * pixel(top + 1, left + 1)
    return (xp.floor((1 - fy) * above + fy * below + 0.5),)


CASES = (
    Case(
        "motion search by half pixels",
        make_motion,
        "void(uint8[:, ::1], uint8[:, ::1], uint16[:, ::1], int8[:, :, ::1])",
        MOTION_CPP,
        motion_work,
        motion_reference,
        tolerance=0.0,
        wider=True,
    ),
    Case(
        "affine map of an image",
        make_affine,
        "void(uint8[:, :, ::1], float32[:, ::1], int32, float32, uint8[:, :, ::1])",
        AFFINE_CPP,
        affine_work,
        affine_reference,
        # The coordinates are float32, so that a value between two bytes may be rounded to the other one.
        tolerance=1e-2,
    ),
)
