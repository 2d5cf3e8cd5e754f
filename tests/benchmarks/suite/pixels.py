"""Grey of a color picture, bytes in and bytes out: planar (CHW) and interleaved (HWC)."""

from __future__ import annotations

import numpy as np

from suite.case import Case, Work, blocks, random_bytes, sized

RED = np.float32(0.299)
GREEN = np.float32(0.587)
BLUE = np.float32(0.114)
HALF = np.float32(0.5)


def make_planar(cuda):
    @cuda.jit
    def grey_planar(rgb, out):
        x, y = cuda.grid(2)
        if y < out.shape[0] and x < out.shape[1]:
            out[y, x] = np.uint8(RED * rgb[0, y, x] + GREEN * rgb[1, y, x] + BLUE * rgb[2, y, x] + HALF)

    return grey_planar


PLANAR_CPP = """
extern "C" __global__ void peer(const unsigned char* __restrict__ rgb, unsigned char* __restrict__ out,
                                int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < height && x < width) {
        int i = y * width + x, plane = height * width;
        out[i] = (unsigned char)(0.299f * rgb[i] + 0.587f * rgb[plane + i] + 0.114f * rgb[2 * plane + i] + 0.5f);
    }
}
"""


def make_interleaved(cuda):
    @cuda.jit
    def grey_interleaved(rgb, out):
        x, y = cuda.grid(2)
        if y < out.shape[0] and x < out.shape[1]:
            out[y, x] = np.uint8(RED * rgb[y, x, 0] + GREEN * rgb[y, x, 1] + BLUE * rgb[y, x, 2] + HALF)

    return grey_interleaved


INTERLEAVED_CPP = """
extern "C" __global__ void peer(const unsigned char* __restrict__ rgb, unsigned char* __restrict__ out,
                                int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < height && x < width) {
        int i = y * width + x;
        out[i] = (unsigned char)(0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2] + 0.5f);
    }
}
"""


def work(size: str, *, planar: bool) -> Work:
    height, width = sized(size, (8192, 8192), (45, 70), cpu=(4096, 4096))
    rgb = random_bytes(3, 3, height, width) if planar else random_bytes(3, height, width, 3)
    return Work(
        grid=(blocks(width, 32), blocks(height, 8)),
        block=(32, 8),
        args=(rgb, np.empty((height, width), np.uint8)),
        outputs=(1,),
        extents=(height, width),
        n_bytes=4 * height * width,
        flops=6 * height * width,
    )


def grey(xp, red, green, blue):
    # In float32 like the kernels: the rounded result may still differ by one if a product and a sum are fused.
    return (xp.floor(RED * red + GREEN * green + BLUE * blue + HALF).astype(xp.float64),)


CASES = (
    Case(
        "grey, planar",
        make_planar,
        "void(uint8[:, :, ::1], uint8[:, ::1])",
        PLANAR_CPP,
        lambda size: work(size, planar=True),
        lambda xp, args: grey(xp, *args[0].astype(xp.float32)),
        tolerance=1 / 254,
    ),
    Case(
        "grey, interleaved",
        make_interleaved,
        "void(uint8[:, :, ::1], uint8[:, ::1])",
        INTERLEAVED_CPP,
        lambda size: work(size, planar=False),
        lambda xp, args: grey(xp, *args[0].astype(xp.float32).transpose(2, 0, 1)),
        tolerance=1 / 254,
    ),
)
