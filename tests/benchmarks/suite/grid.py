"""Two-dimensional grids: a 5-point stencil and the Mandelbrot set."""

from __future__ import annotations

import numpy as np

from suite.case import Case, Work, blocks, random, sized

FOUR = np.float32(4)
ZERO = np.float32(0)
CENTER = np.float32(0.5)
SIDE = np.float32(0.125)


def make_stencil(cuda):
    @cuda.jit
    def stencil(a, out):
        x, y = cuda.grid(2)
        height, width = a.shape
        if y < height and x < width:
            if 0 < y < height - 1 and 0 < x < width - 1:
                out[y, x] = CENTER * a[y, x] + SIDE * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1])
            else:
                out[y, x] = a[y, x]

    return stencil


STENCIL_CPP = """
extern "C" __global__ void peer(const float* __restrict__ a, float* __restrict__ out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < height && x < width) {
        int i = y * width + x;
        if (0 < y && y < height - 1 && 0 < x && x < width - 1)
            out[i] = 0.5f * a[i] + 0.125f * (a[i - width] + a[i + width] + a[i - 1] + a[i + 1]);
        else
            out[i] = a[i];
    }
}
"""


def stencil_work(size: str) -> Work:
    height, width = sized(size, (8192, 8192), (45, 70), cpu=(4096, 4096))
    return Work(
        grid=(blocks(width, 32), blocks(height, 8)),
        block=(32, 8),
        args=(random(9, height, width), np.empty((height, width), np.float32)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=8 * height * width,
        flops=6 * height * width,
    )


def stencil_reference(xp, args):
    a = args[0].astype(xp.float64)
    out = a.copy()
    out[1:-1, 1:-1] = 0.5 * a[1:-1, 1:-1] + 0.125 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return (out,)


def make_mandelbrot(cuda):
    @cuda.jit
    def mandelbrot(left, top, step, limit, out):
        column, row = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            cx = left + np.float32(column) * step
            cy = top + np.float32(row) * step
            zx = ZERO
            zy = ZERO
            count = 0
            while count < limit:
                xx = zx * zx
                yy = zy * zy
                if xx + yy > FOUR:
                    break
                xy = zx * zy
                zx = xx - yy + cx
                zy = xy + xy + cy
                count += 1
            out[row, column] = count

    return mandelbrot


MANDELBROT_CPP = """
extern "C" __global__ void peer(float left, float top, float step, int limit, int* __restrict__ out, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) {
        float cx = left + column * step, cy = top + row * step, zx = 0.0f, zy = 0.0f;
        int count = 0;
        while (count < limit) {
            float xx = zx * zx, yy = zy * zy;
            if (xx + yy > 4.0f) break;
            float xy = zx * zy;
            zx = xx - yy + cx;
            zy = xy + xy + cy;
            ++count;
        }
        out[row * n + column] = count;
    }
}
"""


def mandelbrot_work(size: str) -> Work:
    n = sized(size, 4096, 50, cpu=512)
    return Work(
        grid=(blocks(n, 32), blocks(n, 8)),
        block=(32, 8),
        args=(np.float32(-2), np.float32(-1.3), np.float32(2.6 / n), np.int32(256), np.empty((n, n), np.int32)),
        outputs=(4,),
        extents=(n,),
        n_bytes=4 * n * n,
    )


def mandelbrot_reference(xp, args):
    left, top, step, limit, out = args
    cx = (left + xp.arange(out.shape[1], dtype=xp.float32) * step)[None, :]
    cy = (top + xp.arange(out.shape[0], dtype=xp.float32) * step)[:, None]
    zx, zy = xp.zeros(out.shape, xp.float32), xp.zeros(out.shape, xp.float32)
    count = xp.zeros(out.shape, xp.int32)
    inside = xp.ones(out.shape, bool)
    for _ in range(int(limit)):
        xx, yy = zx * zx, zy * zy
        inside &= xx + yy <= FOUR
        count += inside
        # Points that have escaped are not changed, so that nothing overflows.
        zx, zy = xp.where(inside, xx - yy + cx, zx), xp.where(inside, zx * zy + zx * zy + cy, zy)
    return (count,)


CASES = (
    Case(
        "stencil, 5 points",
        make_stencil,
        "void(float32[:, ::1], float32[:, ::1])",
        STENCIL_CPP,
        stencil_work,
        stencil_reference,
    ),
    Case(
        "mandelbrot",
        make_mandelbrot,
        "void(float32, float32, float32, int32, int32[:, ::1])",
        MANDELBROT_CPP,
        mandelbrot_work,
        mandelbrot_reference,
        tolerance=0.02,
        counts_differences=True,
        flops_of=lambda outputs: 8.0 * float(outputs[0].sum(dtype=np.int64)),
    ),
)
