"""A step of a damped acoustic wave as loops for Numba."""

from fourth.volumes import CENTER, FAR, NEAR, TWO

from reference_kernels.jit import alone, loops, prange


@alone
def second(center, before, after, far_before, far_after):
    return CENTER * center + NEAR * (before + after) + FAR * (far_before + far_after)


@loops
def acoustic_step(previous, now, speed, taper_z, taper_y, taper_x, future):
    depth, height, width = now.shape
    for z in prange(2, depth - 2):
        for y in range(2, height - 2):
            for x in range(2, width - 2):
                c = now[z, y, x]
                laplacian = second(c, now[z - 1, y, x], now[z + 1, y, x], now[z - 2, y, x], now[z + 2, y, x])
                laplacian += second(c, now[z, y - 1, x], now[z, y + 1, x], now[z, y - 2, x], now[z, y + 2, x])
                laplacian += second(c, now[z, y, x - 1], now[z, y, x + 1], now[z, y, x - 2], now[z, y, x + 2])
                taper = taper_z[z] * taper_y[y] * taper_x[x]
                future[z, y, x] = taper * (TWO * c - taper * previous[z, y, x] + speed[z, y, x] * laplacian)
