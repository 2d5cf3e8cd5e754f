"""Physics on regular grids as loops for Numba: two steps of heat, lattice Boltzmann, and a stencil of float64."""

import numpy as np
from second.lattice import AMBIENT, CX, CY, HALF3, NINE_HALVES, ONE, RX, RY, RZ, SHARE, STEPS, THREE, TWO, ZERO

from reference_kernels.jit import alone, loops, prange


@loops
def heat_step(old, power, new):
    height, width = old.shape
    for y in prange(height):
        north = max(y - 1, 0)
        south = min(y + 1, height - 1)
        for x in range(width):
            west = max(x - 1, 0)
            east = min(x + 1, width - 1)
            here = old[y, x]
            new[y, x] = here + (
                power[y, x]
                + (old[south, x] + old[north, x] - TWO * here) * RY
                + (old[y, east] + old[y, west] - TWO * here) * RX
                + (AMBIENT - here) * RZ
            )


@alone
def heat(temperature, power, out):
    assert STEPS == 2
    between = np.empty_like(out)
    heat_step(temperature, power, between)
    heat_step(between, power, out)


@loops
def boltzmann(f, omega, out):
    _, height, width = f.shape
    for y in prange(height):
        g = np.empty(9, np.float32)
        for x in range(width):
            rho = ZERO
            ux = ZERO
            uy = ZERO
            for q in range(9):
                row = y - CY[q]
                row = row + height if row < 0 else (row - height if row >= height else row)
                column = x - CX[q]
                column = column + width if column < 0 else (column - width if column >= width else column)
                value = f[q, row, column]
                g[q] = value
                rho += value
                ux += np.float32(CX[q]) * value
                uy += np.float32(CY[q]) * value
            ux /= rho
            uy /= rho
            square = HALF3 * (ux * ux + uy * uy)
            for q in range(9):
                along = np.float32(CX[q]) * ux + np.float32(CY[q]) * uy
                rest = SHARE[q] * rho * (ONE + THREE * along + NINE_HALVES * along * along - square)
                out[q, y, x] = g[q] + omega * (rest - g[q])


@loops
def stencil3d(a, c0, c1, out):
    depth, height, width = a.shape
    for z in prange(1, depth - 1):
        for y in range(1, height - 1):
            for x in range(1, width - 1):
                out[z, y, x] = c0 * a[z, y, x] + c1 * (
                    a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x] + a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
                )
