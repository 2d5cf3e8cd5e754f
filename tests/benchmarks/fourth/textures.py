"""Images of bytes: histograms of local binary patterns, a block a cell."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, random_bytes, sized

DX = np.array([-1, 0, 1, 1, 1, 0, -1, -1], np.int32)
DY = np.array([-1, -1, -1, 0, 1, 1, 1, 0], np.int32)
CELL = 32


def make_patterns(cuda):
    @cuda.jit
    def patterns(image, codes, histograms):
        dx = cuda.const.array_like(DX)
        dy = cuda.const.array_like(DY)
        counts = cuda.shared.array(256, np.int32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        height, width = image.shape
        counts[ty * 32 + tx] = 0
        cuda.syncthreads()
        x = cuda.blockIdx.x * CELL + tx
        for y in range(cuda.blockIdx.y * CELL + ty, min((cuda.blockIdx.y + 1) * CELL, height), 8):
            if x < width:
                center = image[y, x]
                code = 0
                for k in range(8):
                    row = min(max(y + dy[k], 0), height - 1)
                    column = min(max(x + dx[k], 0), width - 1)
                    if image[row, column] >= center:
                        code |= 1 << k
                codes[y, x] = code
                cuda.atomic.add(counts, code, 1)
        cuda.syncthreads()
        histograms[cuda.blockIdx.y, cuda.blockIdx.x, ty * 32 + tx] = counts[ty * 32 + tx]

    return patterns


PATTERNS_CPP = f"""
#define CELL {CELL}
__constant__ int dx[8] = {{{", ".join(map(str, DX))}}};
__constant__ int dy[8] = {{{", ".join(map(str, DY))}}};
extern "C" __global__ void peer(const unsigned char* image, unsigned char* codes, int* histograms, int height,
                                int width) {{
    __shared__ int counts[256];
    int tx = threadIdx.x, ty = threadIdx.y;
    counts[ty * 32 + tx] = 0;
    __syncthreads();
    int x = blockIdx.x * CELL + tx, end = min((int)(blockIdx.y + 1) * CELL, height);
    for (int y = blockIdx.y * CELL + ty; y < end; y += 8)
        if (x < width) {{
            unsigned char center = image[y * width + x];
            int code = 0;
            for (int k = 0; k < 8; ++k) {{
                int row = min(max(y + dy[k], 0), height - 1), column = min(max(x + dx[k], 0), width - 1);
                if (image[row * width + column] >= center) code |= 1 << k;
            }}
            codes[y * width + x] = code;
            atomicAdd(&counts[code], 1);
        }}
    __syncthreads();
    histograms[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + ty * 32 + tx] = counts[ty * 32 + tx];
}}
"""


def patterns_work(size: str) -> Work:
    height, width = sized(size, (8192, 8192), (50, 75), cpu=(4096, 2048))
    # A smooth image with noise, in which some patterns are frequent.
    smooth = np.add.outer(np.arange(height) % 97, np.arange(width) % 61)
    image = (smooth + random_bytes(430, height, width) // 8).astype(np.uint8)
    rows, columns = -(-height // CELL), -(-width // CELL)
    return Work(
        grid=(columns, rows),
        block=(32, 8),
        args=(image, np.empty((height, width), np.uint8), np.empty((rows, columns, 256), np.int32)),
        outputs=(1, 2),
        extents=(height, width),
        n_bytes=2 * height * width + 1024 * rows * columns,
        flops=24 * height * width,
    )


def patterns_reference(xp, args):
    image, _, histograms = args
    height, width = image.shape
    padded = xp.pad(image, 1, mode="edge")
    codes = xp.zeros((height, width), xp.int64)
    for k, (dx, dy) in enumerate(zip(DX.tolist(), DY.tolist(), strict=True)):
        codes |= (padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width] >= image).astype(xp.int64) << k
    rows, columns = histograms.shape[:2]
    cells = (xp.arange(height) // CELL)[:, None] * columns + xp.arange(width) // CELL
    counts = xp.bincount((cells * 256 + codes).ravel(), minlength=rows * columns * 256)
    return codes, counts.reshape(histograms.shape)


CASES = (
    Case(
        "local binary patterns, a block a cell",
        make_patterns,
        "void(uint8[:, ::1], uint8[:, ::1], int32[:, :, ::1])",
        PATTERNS_CPP,
        patterns_work,
        patterns_reference,
        tolerance=0.0,
    ),
)
