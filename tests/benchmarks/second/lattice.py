"""Physics on regular grids: heat in shared tiles, lattice Boltzmann, and a stencil in three dimensions of float64."""

from __future__ import annotations

import numpy as np
from suite.case import Case, Work, blocks, random, sized

TILE, STEPS = 16, 2
INNER = TILE - 2 * STEPS
RX, RY, RZ, AMBIENT = np.float32(0.1), np.float32(0.15), np.float32(0.05), np.float32(0.8)
TWO = np.float32(2)

CX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1], np.int32)
CY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1], np.int32)
SHARE = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, np.float32)
ZERO, ONE, HALF3, NINE_HALVES, THREE = (np.float32(value) for value in (0, 1, 1.5, 4.5, 3))


def make_heat(cuda):
    @cuda.jit
    def heat(temperature, power, out):
        tile = cuda.shared.array((TILE, TILE), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        height, width = temperature.shape
        x = cuda.blockIdx.x * INNER + tx - STEPS
        y = cuda.blockIdx.y * INNER + ty - STEPS
        inside = x >= 0 and x < width and y >= 0 and y < height
        source = ZERO
        if inside:
            tile[ty, tx] = temperature[y, x]
            source = power[y, x]
        cuda.syncthreads()
        # At the edge of the plate a cell is its own neighbor.
        west = tx - 1 if x > 0 else tx
        east = tx + 1 if x < width - 1 else tx
        north = ty - 1 if y > 0 else ty
        south = ty + 1 if y < height - 1 else ty
        value = ZERO
        for step in range(STEPS):
            known = inside and step < tx and tx < TILE - 1 - step and step < ty and ty < TILE - 1 - step
            if known:
                here = tile[ty, tx]
                value = here + (
                    source
                    + (tile[south, tx] + tile[north, tx] - TWO * here) * RY
                    + (tile[ty, east] + tile[ty, west] - TWO * here) * RX
                    + (AMBIENT - here) * RZ
                )
            cuda.syncthreads()
            if known:
                tile[ty, tx] = value
            cuda.syncthreads()
        if inside and STEPS <= tx and tx < TILE - STEPS and STEPS <= ty and ty < TILE - STEPS:
            out[y, x] = value

    return heat


HEAT_CPP = f"""
#define TILE {TILE}
#define STEPS {STEPS}
#define INNER (TILE - 2 * STEPS)
extern "C" __global__ void peer(const float* temperature, const float* power, float* out, int height, int width) {{
    __shared__ float tile[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * INNER + tx - STEPS, y = blockIdx.y * INNER + ty - STEPS;
    bool inside = x >= 0 && x < width && y >= 0 && y < height;
    float source = 0.0f;
    if (inside) {{
        tile[ty][tx] = temperature[y * width + x];
        source = power[y * width + x];
    }}
    __syncthreads();
    int west = x > 0 ? tx - 1 : tx, east = x < width - 1 ? tx + 1 : tx;
    int north = y > 0 ? ty - 1 : ty, south = y < height - 1 ? ty + 1 : ty;
    float value = 0.0f;
    for (int step = 0; step < STEPS; ++step) {{
        bool known = inside && step < tx && tx < TILE - 1 - step && step < ty && ty < TILE - 1 - step;
        if (known) {{
            float here = tile[ty][tx];
            value = here + (source + (tile[south][tx] + tile[north][tx] - 2.0f * here) * 0.15f +
                            (tile[ty][east] + tile[ty][west] - 2.0f * here) * 0.1f + (0.8f - here) * 0.05f);
        }}
        __syncthreads();
        if (known) tile[ty][tx] = value;
        __syncthreads();
    }}
    if (inside && STEPS <= tx && tx < TILE - STEPS && STEPS <= ty && ty < TILE - STEPS) out[y * width + x] = value;
}}
"""


def heat_work(size: str) -> Work:
    height, width = sized(size, (2048, 2048), (29, 50))
    return Work(
        grid=(blocks(width, INNER), blocks(height, INNER)),
        block=(TILE, TILE),
        args=(random(20, height, width), random(21, height, width), np.empty((height, width), np.float32)),
        outputs=(2,),
        extents=(height, width),
        n_bytes=12 * height * width,
        flops=12 * STEPS * height * width,
    )


def heat_reference(xp, args):
    here, power = args[0].astype(xp.float64), args[1].astype(xp.float64)
    rx, ry, rz, ambient = (float(value) for value in (RX, RY, RZ, AMBIENT))
    for _ in range(STEPS):
        padded = xp.pad(here, 1, mode="edge")
        vertical = padded[2:, 1:-1] + padded[:-2, 1:-1] - 2 * here
        horizontal = padded[1:-1, 2:] + padded[1:-1, :-2] - 2 * here
        here = here + power + vertical * ry + horizontal * rx + (ambient - here) * rz
    return (here,)


def make_boltzmann(cuda):
    @cuda.jit
    def boltzmann(f, omega, out):
        cx = cuda.const.array_like(CX)
        cy = cuda.const.array_like(CY)
        share = cuda.const.array_like(SHARE)
        g = cuda.local.array(9, np.float32)
        x, y = cuda.grid(2)
        _, height, width = f.shape
        if x < width and y < height:
            rho = ZERO
            ux = ZERO
            uy = ZERO
            for q in range(9):
                value = f[q, (y - cy[q]) % height, (x - cx[q]) % width]
                g[q] = value
                rho += value
                ux += np.float32(cx[q]) * value
                uy += np.float32(cy[q]) * value
            ux /= rho
            uy /= rho
            square = HALF3 * (ux * ux + uy * uy)
            for q in range(9):
                along = np.float32(cx[q]) * ux + np.float32(cy[q]) * uy
                rest = share[q] * rho * (ONE + THREE * along + NINE_HALVES * along * along - square)
                out[q, y, x] = g[q] + omega * (rest - g[q])

    return boltzmann


BOLTZMANN_CPP = """
__constant__ int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ float share[9] = {4.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9,
                               1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};
extern "C" __global__ void peer(const float* f, float omega, float* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float g[9], rho = 0.0f, ux = 0.0f, uy = 0.0f;
        for (int q = 0; q < 9; ++q) {
            int row = (y - cy[q] + height) % height, column = (x - cx[q] + width) % width;
            float value = f[(q * height + row) * width + column];
            g[q] = value;
            rho += value;
            ux += cx[q] * value;
            uy += cy[q] * value;
        }
        ux /= rho;
        uy /= rho;
        float square = 1.5f * (ux * ux + uy * uy);
        for (int q = 0; q < 9; ++q) {
            float along = cx[q] * ux + cy[q] * uy;
            float rest = share[q] * rho * (1.0f + 3.0f * along + 4.5f * along * along - square);
            out[(q * height + y) * width + x] = g[q] + omega * (rest - g[q]);
        }
    }
}
"""


def boltzmann_work(size: str) -> Work:
    height, width = sized(size, (1024, 1024), (13, 37))
    f = random(22, 9, height, width) * np.float32(0.1) + SHARE[:, None, None]
    return Work(
        grid=(blocks(width, 128), height),
        block=(128, 1),
        args=(f, np.float32(1.2), np.empty_like(f)),
        outputs=(2,),
        extents=(height, width),
        n_bytes=72 * height * width,
        flops=150 * height * width,
    )


def boltzmann_reference(xp, args):
    f, omega = args[0].astype(xp.float64), float(args[1])
    g = xp.stack([xp.roll(f[q], (int(CY[q]), int(CX[q])), (0, 1)) for q in range(9)])
    rho = g.sum(axis=0)
    ux = sum(int(CX[q]) * g[q] for q in range(9)) / rho
    uy = sum(int(CY[q]) * g[q] for q in range(9)) / rho
    out = xp.empty(f.shape)
    for q in range(9):
        along = int(CX[q]) * ux + int(CY[q]) * uy
        rest = float(SHARE[q]) * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))
        out[q] = g[q] + omega * (rest - g[q])
    return (out,)


def make_stencil3d(cuda):
    @cuda.jit
    def stencil3d(a, c0, c1, out):
        x, y, z = cuda.grid(3)
        depth, height, width = a.shape
        if 0 < x < width - 1 and 0 < y < height - 1 and 0 < z < depth - 1:
            out[z, y, x] = c0 * a[z, y, x] + c1 * (
                a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x] + a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
            )

    return stencil3d


STENCIL3D_CPP = """
extern "C" __global__ void peer(const double* a, double c0, double c1, double* out, int depth, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (0 < x && x < width - 1 && 0 < y && y < height - 1 && 0 < z && z < depth - 1) {
        int i = (z * height + y) * width + x, plane = height * width;
        out[i] = c0 * a[i] + c1 * (a[i - plane] + a[i + plane] + a[i - width] + a[i + width] + a[i - 1] + a[i + 1]);
    }
}
"""


def stencil3d_work(size: str) -> Work:
    n = sized(size, 320, 19, cpu=240)
    a = np.random.default_rng(23).random((n, n, n))
    return Work(
        grid=(blocks(n, 32), blocks(n, 4), blocks(n, 2)),
        block=(32, 4, 2),
        args=(a, np.float64(0.4), np.float64(0.1), np.empty_like(a)),
        outputs=(3,),
        extents=(n, n, n),
        n_bytes=16 * n**3,
        flops=8 * n**3,
    )


def stencil3d_reference(xp, args):
    a, out = args[0], xp.zeros(args[0].shape)
    inner = slice(1, -1)
    sides = a[:-2, inner, inner] + a[2:, inner, inner] + a[inner, :-2, inner]
    sides = sides + a[inner, 2:, inner] + a[inner, inner, :-2] + a[inner, inner, 2:]
    out[1:-1, 1:-1, 1:-1] = 0.4 * a[1:-1, 1:-1, 1:-1] + 0.1 * sides
    return (out,)


CASES = (
    Case(
        "heat in shared tiles",
        make_heat,
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])",
        HEAT_CPP,
        heat_work,
        heat_reference,
    ),
    Case(
        "lattice Boltzmann, D2Q9",
        make_boltzmann,
        "void(float32[:, :, ::1], float32, float32[:, :, ::1])",
        BOLTZMANN_CPP,
        boltzmann_work,
        boltzmann_reference,
    ),
    Case(
        "stencil, 7 points of float64",
        make_stencil3d,
        "void(float64[:, :, ::1], float64, float64, float64[:, :, ::1])",
        STENCIL3D_CPP,
        stencil3d_work,
        stencil3d_reference,
        tolerance=1e-14,
        accumulates=True,  # its border is never written
    ),
)
