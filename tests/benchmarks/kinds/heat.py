"""Heat in tiles of shared memory: several time steps a launch, with a halo that shrinks by one cell a step."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

BLOCK = 16
STEPS = 3
INNER = BLOCK - 2 * STEPS
WIDE, HIGH, HALO = 32, 8, 2
TILE_WIDE = WIDE + 2 * HALO
TILE_HIGH = HIGH + 2 * HALO


def make_pyramid(cuda):
    @cuda.jit
    def hotspot(power, temperature, out, cap, rx, ry, rz, step, ambient):
        old = cuda.shared.array((BLOCK, BLOCK), np.float32)
        heating = cuda.shared.array((BLOCK, BLOCK), np.float32)
        new = cuda.shared.array((BLOCK, BLOCK), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        rows = temperature.shape[0]
        columns = temperature.shape[1]
        top = cuda.blockIdx.y * INNER - STEPS
        left = cuda.blockIdx.x * INNER - STEPS
        y = top + ty
        x = left + tx
        inside = y >= 0 and y < rows and x >= 0 and x < columns
        if inside:
            old[ty, tx] = temperature[y, x]
            heating[ty, tx] = power[y, x]
        cuda.syncthreads()
        # The part of the tile that is in the grid
        y_min = -top if top < 0 else 0
        y_max = BLOCK - 1 - (top + BLOCK - rows) if top + BLOCK > rows else BLOCK - 1
        x_min = -left if left < 0 else 0
        x_max = BLOCK - 1 - (left + BLOCK - columns) if left + BLOCK > columns else BLOCK - 1
        north = max(ty - 1, y_min)
        south = min(ty + 1, y_max)
        west = max(tx - 1, x_min)
        east = min(tx + 1, x_max)
        factor = step / cap
        computed = False
        for i in range(STEPS):
            computed = False
            if i + 1 <= tx <= BLOCK - i - 2 and i + 1 <= ty <= BLOCK - i - 2 and inside:
                computed = True
                center = old[ty, tx]
                new[ty, tx] = center + factor * (
                    heating[ty, tx]
                    + (old[south, tx] + old[north, tx] - center - center) / ry
                    + (old[ty, east] + old[ty, west] - center - center) / rx
                    + (ambient - center) / rz
                )
            cuda.syncthreads()
            if i == STEPS - 1:
                break
            if computed:
                old[ty, tx] = new[ty, tx]
            cuda.syncthreads()
        if computed:
            out[y, x] = new[ty, tx]

    return hotspot


PYRAMID_CPP = f"""
#define BLOCK {BLOCK}
#define STEPS {STEPS}
#define INNER (BLOCK - 2 * STEPS)
extern "C" __global__ void peer(const float* power, const float* temperature, float* out, float cap, float rx, float ry,
                                float rz, float step, float ambient, int rows, int columns) {{
    __shared__ float old[BLOCK][BLOCK], heating[BLOCK][BLOCK], next[BLOCK][BLOCK];
    int tx = threadIdx.x, ty = threadIdx.y;
    int top = blockIdx.y * INNER - STEPS, left = blockIdx.x * INNER - STEPS;
    int y = top + ty, x = left + tx;
    bool inside = y >= 0 && y < rows && x >= 0 && x < columns;
    if (inside) {{
        old[ty][tx] = temperature[y * columns + x];
        heating[ty][tx] = power[y * columns + x];
    }}
    __syncthreads();
    int y_min = top < 0 ? -top : 0, y_max = top + BLOCK > rows ? BLOCK - 1 - (top + BLOCK - rows) : BLOCK - 1;
    int x_min = left < 0 ? -left : 0, x_max = left + BLOCK > columns ? BLOCK - 1 - (left + BLOCK - columns) : BLOCK - 1;
    int north = max(ty - 1, y_min), south = min(ty + 1, y_max);
    int west = max(tx - 1, x_min), east = min(tx + 1, x_max);
    float factor = step / cap;
    bool computed = false;
    for (int i = 0; i < STEPS; ++i) {{
        computed = false;
        if (i + 1 <= tx && tx <= BLOCK - i - 2 && i + 1 <= ty && ty <= BLOCK - i - 2 && inside) {{
            computed = true;
            float center = old[ty][tx];
            next[ty][tx] = center + factor * (heating[ty][tx]
                + (old[south][tx] + old[north][tx] - center - center) / ry
                + (old[ty][east] + old[ty][west] - center - center) / rx + (ambient - center) / rz);
        }}
        __syncthreads();
        if (i == STEPS - 1) break;
        if (computed) old[ty][tx] = next[ty][tx];
        __syncthreads();
    }}
    if (computed) out[y * columns + x] = next[ty][tx];
}}
"""


def pyramid_work(size: str) -> Work:
    rows, columns = sized(size, (2048, 2048), (37, 45))
    numbers = (0.5, 10.0, 11.0, 3.0, 0.1, 80.0)
    return Work(
        grid=(blocks(columns, INNER), blocks(rows, INNER)),
        block=(BLOCK, BLOCK),
        args=(
            random(150, rows, columns) * np.float32(20), random(151, rows, columns) * np.float32(40) + np.float32(60),
            np.empty((rows, columns), np.float32), *map(np.float32, numbers),
        ),
        outputs=(2,),
        extents=(rows, columns),
        n_bytes=12 * rows * columns,
        flops=15 * STEPS * rows * columns,
    )  # fmt: skip


def pyramid_reference(xp, args):
    power, temperature, _, *numbers = args
    cap, rx, ry, rz, step, ambient = map(float, numbers)
    power, now = power.astype(xp.float64), temperature.astype(xp.float64)
    for _ in range(STEPS):
        padded = xp.pad(now, 1, mode="edge")
        now = now + step / cap * (
            power
            + (padded[2:, 1:-1] + padded[:-2, 1:-1] - 2 * now) / ry
            + (padded[1:-1, 2:] + padded[1:-1, :-2] - 2 * now) / rx
            + (ambient - now) / rz
        )
    return (now,)


def make_two_buffers(cuda):
    @cuda.jit
    def diffuse(field, conductivity, out, n_steps):
        # Two buffers; the tile has a halo of as many cells as there are steps.
        tile = cuda.shared.array((2, TILE_HIGH, TILE_WIDE), np.float32)
        rate = cuda.shared.array((TILE_HIGH, TILE_WIDE), np.float32)
        height, width = field.shape
        x0 = cuda.blockIdx.x * WIDE - HALO
        y0 = cuda.blockIdx.y * HIGH - HALO
        tid = cuda.threadIdx.y * WIDE + cuda.threadIdx.x
        cells = TILE_HIGH * TILE_WIDE
        for k in range(tid, cells, WIDE * HIGH):
            j, i = divmod(k, TILE_WIDE)
            x = x0 + i
            y = y0 + j
            if 0 <= x < width and 0 <= y < height:
                tile[0, j, i] = field[y, x]
                tile[1, j, i] = field[y, x]
                rate[j, i] = 0.2 * conductivity[y, x]
            else:
                tile[0, j, i] = 20.0
                tile[1, j, i] = 20.0
                rate[j, i] = 0.0
        cuda.syncthreads()
        source = 0
        for _ in range(n_steps):
            for k in range(tid, cells, WIDE * HIGH):
                j, i = divmod(k, TILE_WIDE)
                if 0 < i < TILE_WIDE - 1 and 0 < j < TILE_HIGH - 1:
                    c = tile[source, j, i]
                    around = tile[source, j - 1, i] + tile[source, j + 1, i]
                    around += tile[source, j, i - 1] + tile[source, j, i + 1]
                    tile[1 - source, j, i] = c + rate[j, i] * (around - 4.0 * c)
            cuda.syncthreads()
            source = 1 - source
        x = x0 + HALO + cuda.threadIdx.x
        y = y0 + HALO + cuda.threadIdx.y
        if x < width and y < height:
            out[y, x] = tile[source, cuda.threadIdx.y + HALO, cuda.threadIdx.x + HALO]

    return diffuse


TWO_BUFFERS_CPP = f"""
#define WIDE {WIDE}
#define HIGH {HIGH}
#define HALO {HALO}
#define TILE_WIDE (WIDE + 2 * HALO)
#define TILE_HIGH (HIGH + 2 * HALO)
extern "C" __global__ void peer(const float* field, const float* conductivity, float* out, int n_steps, int height,
                                int width) {{
    __shared__ float tile[2][TILE_HIGH][TILE_WIDE];
    __shared__ float rate[TILE_HIGH][TILE_WIDE];
    int x0 = blockIdx.x * WIDE - HALO, y0 = blockIdx.y * HIGH - HALO;
    int tid = threadIdx.y * WIDE + threadIdx.x;
    const int cells = TILE_HIGH * TILE_WIDE;
    for (int k = tid; k < cells; k += WIDE * HIGH) {{
        int j = k / TILE_WIDE, i = k % TILE_WIDE, x = x0 + i, y = y0 + j;
        if (0 <= x && x < width && 0 <= y && y < height) {{
            tile[0][j][i] = field[y * width + x];
            tile[1][j][i] = field[y * width + x];
            rate[j][i] = 0.2f * conductivity[y * width + x];
        }} else {{
            tile[0][j][i] = 20.0f;
            tile[1][j][i] = 20.0f;
            rate[j][i] = 0.0f;
        }}
    }}
    __syncthreads();
    int source = 0;
    for (int step = 0; step < n_steps; ++step) {{
        for (int k = tid; k < cells; k += WIDE * HIGH) {{
            int j = k / TILE_WIDE, i = k % TILE_WIDE;
            if (0 < i && i < TILE_WIDE - 1 && 0 < j && j < TILE_HIGH - 1) {{
                float c = tile[source][j][i];
                float around = tile[source][j - 1][i] + tile[source][j + 1][i];
                around += tile[source][j][i - 1] + tile[source][j][i + 1];
                tile[1 - source][j][i] = c + rate[j][i] * (around - 4.0f * c);
            }}
        }}
        __syncthreads();
        source = 1 - source;
    }}
    int x = x0 + HALO + threadIdx.x, y = y0 + HALO + threadIdx.y;
    if (x < width && y < height) out[y * width + x] = tile[source][threadIdx.y + HALO][threadIdx.x + HALO];
}}
"""


def two_buffers_work(size: str) -> Work:
    height, width = sized(size, (4096, 4096), (29, 70), cpu=(3072, 3072))
    return Work(
        grid=(blocks(width, WIDE), blocks(height, HIGH)),
        block=(WIDE, HIGH),
        args=(
            random(152, height, width) * np.float32(80), random(153, height, width),
            np.empty((height, width), np.float32), np.int32(HALO),
        ),
        outputs=(2,),
        extents=(height, width),
        n_bytes=12 * height * width,
        flops=7 * HALO * height * width,
    )  # fmt: skip


def two_buffers_reference(xp, args):
    field, conductivity, _, n_steps = args
    now, rate = field.astype(xp.float64), 0.2 * conductivity.astype(xp.float64)
    for _ in range(int(n_steps)):
        padded = xp.pad(now, 1, constant_values=20.0)
        around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
        now = now + rate * (around - 4 * now)
    return (now,)


CASES = (
    Case(
        "hotspot, three steps in a tile",
        make_pyramid,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32, float32, float32, float32, float32, float32)",
        PYRAMID_CPP,
        pyramid_work,
        pyramid_reference,
    ),
    Case(
        "diffusion, two steps in a tile of two buffers",
        make_two_buffers,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], int32)",
        TWO_BUFFERS_CPP,
        two_buffers_work,
        two_buffers_reference,
        wider=True,
    ),
)
