"""Fields in steps: FDTD, Jacobi, red-black SOR, Gray-Scott, a wave, Ising's spins, and a rule of cells."""

from __future__ import annotations

import numpy as np
from suite.case import blocks, random, sized

from third.forms import Host, given, on_cpu

ONE, TWO, HALF, QUARTER = np.float32(1), np.float32(2), np.float32(0.5), np.float32(0.25)
CURL, FACTOR = np.float32(0.5), np.float32(0.7)
OMEGA = np.float32(1.5)


def make_fdtd(cuda):
    @cuda.jit
    def step_ey(ex, ey, hz, source):
        j, i = cuda.grid(2)
        nx, ny = hz.shape
        if i < nx and j < ny:
            if i == 0:
                ey[i, j] = source
            else:
                ey[i, j] = ey[i, j] - CURL * (hz[i, j] - hz[i - 1, j])

    @cuda.jit
    def step_ex(ex, ey, hz):
        j, i = cuda.grid(2)
        nx, ny = hz.shape
        if i < nx and j < ny and j > 0:
            ex[i, j] = ex[i, j] - CURL * (hz[i, j] - hz[i, j - 1])

    @cuda.jit
    def step_hz(ex, ey, hz):
        j, i = cuda.grid(2)
        nx, ny = hz.shape
        if i < nx and j < ny:
            hz[i, j] = hz[i, j] - FACTOR * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])

    def fdtd(grid, block, ex, ey, hz, sources):
        for source in sources:
            step_ey[grid, block](ex, ey, hz, source)
            step_ex[grid, block](ex, ey, hz)
            step_hz[grid, block](ex, ey, hz)

    return Host(lambda grid, block, ex, ey, hz, steps: fdtd(grid, block, ex, ey, hz, impulse(int(steps))))


def impulse(steps: int) -> np.ndarray:
    """The field at the edge in each step."""
    return np.arange(steps).astype(np.float32) / np.float32(4)


def fdtd_work(size: str):
    nx, ny, steps = sized(size, (1024, 1024, 8), (19, 45, 3))
    args = (random(290, nx, ny + 1), random(291, nx + 1, ny), random(292, nx, ny), np.int32(steps))
    return given((blocks(ny, 32), blocks(nx, 8)), (32, 8), args, (0, 1, 2), (nx, ny), in_place=(0, 1, 2))


def fdtd_reference(xp, args):
    ex, ey, hz = (each.astype(xp.float64) for each in args[:3])
    for source in impulse(int(args[3])):
        ey[0] = source
        ey[1:-1] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:-1] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz -= float(FACTOR) * (ex[:, 1:] - ex[:, :-1] + ey[1:] - ey[:-1])
    return ex, ey, hz


def make_jacobi(cuda):
    @cuda.jit
    def relax(old, new):
        x, y = cuda.grid(2)
        height, width = old.shape
        if x >= 1 and x < width - 1 and y >= 1 and y < height - 1:
            new[y, x] = QUARTER * (old[y, x - 1] + old[y, x + 1] + old[y - 1, x] + old[y + 1, x])

    def jacobi(grid, block, a, b, steps):
        for _ in range(steps // 2):
            relax[grid, block](a, b)
            relax[grid, block](b, a)

    return Host(jacobi)


def jacobi_work(size: str):
    height, width, steps = sized(size, (1024, 1024, 20), (20, 45, 4))
    a = random(293, height, width)
    args = (a, a.copy(), np.int32(steps))
    return given((blocks(width, 32), blocks(height, 32)), (32, 32), args, (0,), (height, width), in_place=(0, 1))


def jacobi_reference(xp, args):
    a = args[0].astype(xp.float64)
    for _ in range(int(args[2])):
        a[1:-1, 1:-1] = 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1])
    return (a,)


def make_sor(cuda):
    @cuda.jit
    def relax(u, color):
        x, y = cuda.grid(2)
        height, width = u.shape
        if x > 0 and y > 0 and x < width - 1 and y < height - 1 and (x + y) % 2 == color:
            average = QUARTER * (u[y, x - 1] + u[y, x + 1] + u[y - 1, x] + u[y + 1, x])
            u[y, x] = (ONE - OMEGA) * u[y, x] + OMEGA * average

    def sor(grid, block, u, steps):
        for _ in range(steps):
            relax[grid, block](u, 0)
            relax[grid, block](u, 1)

    return Host(sor)


def sor_work(size: str):
    height, width, steps = sized(size, (1024, 1024, 8), (20, 45, 3))
    args = (random(294, height, width), np.int32(steps))
    return given((blocks(width, 16), blocks(height, 16)), (16, 16), args, (0,), (height, width), in_place=(0,))


def sor_reference(xp, args):
    u = args[0].astype(xp.float64)
    y, x = xp.indices(u.shape)
    for step in range(2 * int(args[1])):
        new = u.copy()
        average = 0.25 * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1])
        new[1:-1, 1:-1] = -0.5 * u[1:-1, 1:-1] + 1.5 * average
        u = xp.where((x + y) % 2 == step % 2, new, u)
    return (u,)


def make_gray_scott(cuda):
    @cuda.jit
    def gray_scott(u, v, du, dv, feed, kill, u_new, v_new):
        x, y = cuda.grid(2)
        height, width = u.shape
        if x < width and y < height:
            west = (x - 1 + width) % width
            east = (x + 1) % width
            north = (y - 1 + height) % height
            south = (y + 1) % height
            here_u = u[y, x]
            here_v = v[y, x]
            laplace_u = u[y, west] + u[y, east] + u[north, x] + u[south, x] - np.float32(4) * here_u
            laplace_v = v[y, west] + v[y, east] + v[north, x] + v[south, x] - np.float32(4) * here_v
            reaction = here_u * here_v * here_v
            u_new[y, x] = here_u + du * laplace_u - reaction + feed * (ONE - here_u)
            v_new[y, x] = here_v + dv * laplace_v + reaction - (feed + kill) * here_v

    return gray_scott


def gray_scott_work(size: str):
    shape = sized(size, (2048, 2048), (20, 45))
    constants = (np.float32(value) for value in (0.16, 0.08, 0.06, 0.062))
    args = (
        random(295, *shape),
        random(296, *shape),
        *constants,
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
    )
    return given((blocks(shape[1], 16), blocks(shape[0], 16)), (16, 16), args, (6, 7), shape)


def gray_scott_reference(xp, args):
    u, v, du, dv, feed, kill = (each.astype(xp.float64) for each in args[:6])

    def laplace(f):
        return sum(xp.roll(f, shift, axis) for shift in (1, -1) for axis in (0, 1)) - 4 * f

    return u + du * laplace(u) - u * v * v + feed * (1 - u), v + dv * laplace(v) + u * v * v - (feed + kill) * v


def make_wave(cuda):
    @cuda.jit
    def wave(previous, now, speed, coefficients, future):
        x, y = cuda.grid(2)
        height, width = now.shape
        if x >= 4 and x < width - 4 and y >= 4 and y < height - 4:
            total = TWO * coefficients[0] * now[y, x]
            for r in range(1, 5):
                total += coefficients[r] * (now[y, x - r] + now[y, x + r] + now[y - r, x] + now[y + r, x])
            future[y, x] = TWO * now[y, x] - previous[y, x] + speed[y, x] * total

    return wave


def wave_work(size: str):
    shape = sized(size, (2048, 1024), (20, 45))
    coefficients = np.array([-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560], np.float32)
    args = (random(297, *shape), random(298, *shape), random(299, *shape), coefficients, random(300, *shape))
    return given((blocks(shape[1], 32), blocks(shape[0], 8)), (32, 8), args, (4,), shape, in_place=(4,))


def wave_reference(xp, args):
    previous, now, speed, coefficients, future = (each.astype(xp.float64) for each in args)
    height, width = now.shape

    def moved(j, i):
        return now[4 + j : height - 4 + j, 4 + i : width - 4 + i]

    total = 2 * coefficients[0] * moved(0, 0)
    for r in range(1, 5):
        total += coefficients[r] * (moved(0, -r) + moved(0, r) + moved(-r, 0) + moved(r, 0))
    inner = slice(4, -4), slice(4, -4)
    future[inner] = 2 * now[inner] - previous[inner] + speed[inner] * total
    return (future,)


def make_ising(cuda):
    @cuda.jit
    def flip(spins, states, thresholds, color):
        x, y = cuda.grid(2)
        height, width = spins.shape
        if x < width and y < height and (x + y) % 2 == color:
            state = np.uint32(states[y, x] * np.uint32(1664525) + np.uint32(1013904223))
            states[y, x] = state
            total = (
                spins[y, (x + 1) % width] + spins[y, (x + width - 1) % width]
                + spins[(y + 1) % height, x] + spins[(y + height - 1) % height, x]
            )  # fmt: skip
            agreement = spins[y, x] * total
            if agreement <= 0 or state < thresholds[agreement]:
                spins[y, x] = -spins[y, x]

    def ising(grid, block, spins, states, thresholds):
        flip[grid, block](spins, states, thresholds, 0)
        flip[grid, block](spins, states, thresholds, 1)

    return Host(ising)


def ising_work(size: str):
    height, width = sized(size, (1024, 1024), (20, 46))
    numbers = np.random.default_rng(301)
    thresholds = np.array([2.0**32 - 1, *(2.0**32 * np.exp(-2 * 0.44 * k) for k in range(1, 5))]).astype(np.uint32)
    args = (numbers.choice(np.array([-1, 1], np.int8), (height, width)),
            numbers.integers(0, 1 << 32, (height, width), dtype=np.uint32), thresholds)  # fmt: skip
    return given((blocks(width, 16), blocks(height, 16)), (16, 16), args, (0, 1), (height, width), in_place=(0, 1))


def ising_reference(xp, args):
    spins, states = args[0].astype(xp.int64), args[1].astype(xp.uint64)
    y, x = xp.indices(spins.shape)
    for color in (0, 1):
        chosen = (x + y) % 2 == color
        states = xp.where(chosen, (states * 1664525 + 1013904223) & 0xFFFFFFFF, states)
        agreement = spins * sum(xp.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))
        flips = (agreement <= 0) | (states < args[2][xp.clip(agreement, 0, 4)])
        spins = xp.where(chosen & flips, -spins, spins)
    return spins, states


def make_rule(cuda):
    @cuda.jit
    def step(old, new, rule):
        i = cuda.grid(1)
        n = old.size
        if i < n:
            left = old[(i + n - 1) % n]
            right = old[(i + 1) % n]
            pattern = 4 * left + 2 * old[i] + right
            new[i] = (rule >> pattern) & 1

    def cells(grid, block, a, b, rule):
        for _ in range(10):
            step[grid, block](a, b, rule)
            step[grid, block](b, a, rule)

    return Host(cells)


def rule_work(size: str):
    n = sized(size, 1 << 20, 700)
    a = np.random.default_rng(302).integers(0, 2, n, dtype=np.uint8)
    return given((blocks(n, 256),), (256,), (a, a.copy(), np.int32(30)), (0,), (n,), in_place=(0, 1))


def rule_reference(xp, args):
    cells = args[0]
    for _ in range(20):
        cells = (int(args[2]) >> (4 * xp.roll(cells, 1) + 2 * cells + xp.roll(cells, -1))) & 1
    return (cells,)


CASES = (
    on_cpu("FDTD in two dimensions", make_fdtd, fdtd_work, fdtd_reference),
    on_cpu("Jacobi, two buffers", make_jacobi, jacobi_work, jacobi_reference),
    on_cpu("SOR, red and black", make_sor, sor_work, sor_reference),
    on_cpu("Gray-Scott, periodic", make_gray_scott, gray_scott_work, gray_scott_reference),
    on_cpu("wave of eighth order", make_wave, wave_work, wave_reference),
    on_cpu("Ising's spins by colors", make_ising, ising_work, ising_reference, tolerance=0.0, wider=True),
    on_cpu("rule 30", make_rule, rule_work, rule_reference, tolerance=0.0, wider=True),
)
