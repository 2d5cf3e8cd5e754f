"""Grids after Rodinia: heat in three dimensions, one thread per column, and both kernels of SRAD by neighbor lists."""

from __future__ import annotations

import numpy as np
from suite.case import blocks, random, sized

from third.forms import given, on_cpu

AMBIENT = np.float32(80)
ZERO, ONE, TWO = np.float32(0), np.float32(1), np.float32(2)
HALF, QUARTER, SIXTEENTH = np.float32(0.5), np.float32(0.25), np.float32(1 / 16)


def make_hotspot3d(cuda):
    @cuda.jit
    def hotspot3d(power, t_in, t_out, sdc, ce, cn, ct, cc):
        i, j = cuda.grid(2)
        nz, ny, nx = t_in.shape
        if i < nx and j < ny:
            west = i if i == 0 else i - 1
            east = i if i == nx - 1 else i + 1
            north = j if j == 0 else j - 1
            south = j if j == ny - 1 else j + 1
            below = t_in[0, j, i]
            here = below
            above = t_in[1, j, i]
            for k in range(nz):
                t_out[k, j, i] = (
                    cc * here + ce * (t_in[k, j, west] + t_in[k, j, east])
                    + cn * (t_in[k, south, i] + t_in[k, north, i])
                    + ct * (below + above) + sdc * power[k, j, i] + ct * AMBIENT
                )  # fmt: skip
                below = here
                here = above
                if k < nz - 2:
                    above = t_in[k + 2, j, i]

    return hotspot3d


def hotspot3d_work(size: str):
    nz, ny, nx = sized(size, (8, 1024, 1024), (3, 9, 70))
    shape = nz, ny, nx
    scalars = (np.float32(value) for value in (0.2, 0.03, 0.04, 0.1, 0.56))
    return given(
        (blocks(nx, 64), blocks(ny, 4)), (64, 4),
        (random(200, *shape), random(201, *shape) * np.float32(40) + np.float32(320), np.empty(shape, np.float32),
         *scalars),
        (2,), shape,
    )  # fmt: skip


def hotspot3d_reference(xp, args):
    power, t, sdc, ce, cn, ct, cc = (each.astype(xp.float64) for each in (*args[:2], *args[3:]))
    p = xp.pad(t, 1, mode="edge")
    return (
        cc * t + ce * (p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]) + cn * (p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1])
        + ct * (p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1]) + sdc * power + ct * 80.0,
    )  # fmt: skip


def make_srad1(cuda):
    @cuda.jit
    def srad1(image, i_n, i_s, j_w, j_e, q0sqr, d_n, d_s, d_w, d_e, c, rows):
        ei = cuda.grid(1)
        if ei < image.size:
            row = ei % rows
            col = ei // rows
            here = image[ei]
            n = image[i_n[row] + rows * col] - here
            s = image[i_s[row] + rows * col] - here
            w = image[row + rows * j_w[col]] - here
            e = image[row + rows * j_e[col]] - here
            g2 = (n * n + s * s + w * w + e * e) / (here * here)
            laplace = (n + s + w + e) / here
            num = HALF * g2 - SIXTEENTH * (laplace * laplace)
            den = ONE + QUARTER * laplace
            qsqr = num / (den * den)
            den = (qsqr - q0sqr) / (q0sqr * (ONE + q0sqr))
            diffusion = ONE / (ONE + den)
            if diffusion < ZERO:
                diffusion = ZERO
            elif diffusion > ONE:
                diffusion = ONE
            d_n[ei] = n
            d_s[ei] = s
            d_w[ei] = w
            d_e[ei] = e
            c[ei] = diffusion

    return srad1


def neighbors(rows: int, columns: int):
    row, column = np.arange(rows, dtype=np.int32), np.arange(columns, dtype=np.int32)
    clip = np.clip
    return (
        clip(row - 1, 0, rows - 1), clip(row + 1, 0, rows - 1),
        clip(column - 1, 0, columns - 1), clip(column + 1, 0, columns - 1),
    )  # fmt: skip


def srad_shape(size: str):
    return sized(size, (2048, 1500), (37, 29))


def srad1_work(size: str):
    rows, columns = srad_shape(size)
    n = rows * columns
    image = np.exp(random(202, n))
    return given(
        (blocks(n, 512),), (512,),
        (image, *neighbors(rows, columns), np.float32(0.05), *(np.empty(n, np.float32) for _ in range(5)),
         np.int32(rows)),
        (6, 7, 8, 9, 10), (columns,),
    )  # fmt: skip


def srad1_reference(xp, args):
    rows = int(args[-1])
    image = args[0].astype(xp.float64).reshape(-1, rows)
    i_n, i_s, j_w, j_e = args[1:5]
    q0 = float(args[5])
    n, s, w, e = (each - image for each in (image[:, i_n], image[:, i_s], image[j_w], image[j_e]))
    g2 = (n * n + s * s + w * w + e * e) / image**2
    laplace = (n + s + w + e) / image
    q = (0.5 * g2 - laplace**2 / 16) / (1 + 0.25 * laplace) ** 2
    c = xp.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
    return tuple(each.ravel() for each in (n, s, w, e, c))


def make_srad2(cuda):
    @cuda.jit
    def srad2(d_n, d_s, d_w, d_e, c, i_s, j_e, strength, image, rows):
        ei = cuda.grid(1)
        if ei < image.size:
            row = ei % rows
            col = ei // rows
            here = c[ei]
            south = c[i_s[row] + rows * col]
            east = c[row + rows * j_e[col]]
            divergence = here * d_n[ei] + south * d_s[ei] + here * d_w[ei] + east * d_e[ei]
            image[ei] += QUARTER * strength * divergence

    return srad2


def srad2_work(size: str):
    rows, columns = srad_shape(size)
    n = rows * columns
    _, i_s, _, j_e = neighbors(rows, columns)
    return given(
        (blocks(n, 512),), (512,),
        (*(random(203 + k, n) for k in range(5)), i_s, j_e, np.float32(0.5), random(209, n), np.int32(rows)),
        (8,), (columns,), in_place=(8,),
    )  # fmt: skip


def srad2_reference(xp, args):
    rows = int(args[-1])
    n, s, w, e, c, image = (each.astype(xp.float64).reshape(-1, rows) for each in (*args[:5], args[8]))
    return ((image + 0.25 * float(args[7]) * (c * n + c[:, args[5]] * s + c * w + c[args[6]] * e)).ravel(),)


CASES = (
    on_cpu("hotspot3D", make_hotspot3d, hotspot3d_work, hotspot3d_reference),
    on_cpu("SRAD, coefficients", make_srad1, srad1_work, srad1_reference, tolerance=1e-4),
    on_cpu("SRAD, update", make_srad2, srad2_work, srad2_reference),
)
