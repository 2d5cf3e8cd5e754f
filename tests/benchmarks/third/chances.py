"""Independent loops of each thread: options by Monte Carlo, membranes by Runge-Kutta, queens, edit distances."""

from __future__ import annotations

import math

import numpy as np
from suite.case import blocks, random, random_bytes, sized

from third.forms import given, on_cpu

ZERO, ONE, TWO, HALF = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)
SCALE = np.float32(2.0**-32)
TURN = np.float32(2 * math.pi)
LONGEST = 24


def make_options(cuda):
    @cuda.jit
    def options(seeds, start, strike, rate, volatility, years, paths, prices):
        i = cuda.grid(1)
        if i < prices.size:
            state = seeds[i]
            drift = (rate - HALF * volatility * volatility) * years
            spread = volatility * math.sqrt(years)
            total = ZERO
            for _ in range(paths):
                state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
                u1 = (np.float32(state) + ONE) * SCALE
                state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
                u2 = np.float32(state) * SCALE
                normal = math.sqrt(-TWO * math.log(u1)) * math.cos(TURN * u2)
                price = start[i] * math.exp(drift + spread * normal)
                total += max(price - strike[i], ZERO)
            prices[i] = total / np.float32(paths) * math.exp(-rate * years)

    return options


def options_work(size: str):
    n, paths = sized(size, (2048, 256), (300, 20))
    seeds = np.random.default_rng(320).integers(0, 1 << 32, n, dtype=np.uint32)
    args = (seeds, random(321, n) + np.float32(9), random(322, n) + np.float32(9), np.float32(0.03), np.float32(0.3),
            np.float32(1.5), np.int32(paths), np.empty(n, np.float32))  # fmt: skip
    return given((blocks(n, 128),), (128,), args, (7,), (n,))


def options_reference(xp, args):
    state = args[0].astype(xp.uint64)
    start, strike, rate, volatility, years = (each.astype(xp.float64) for each in args[1:6])
    total, paths = xp.zeros(start.shape), int(args[6])
    for _ in range(paths):
        first = state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        # A float32 holds 24 bits of the state; the cosine does not depend on more bits of its angle.
        u1, u2 = (first.astype(xp.float32) + 1) * SCALE, state.astype(xp.float32) * SCALE
        normal = xp.sqrt(-2 * xp.log(u1.astype(xp.float64))) * xp.cos(2 * math.pi * u2.astype(xp.float64))
        price = start * xp.exp((rate - volatility**2 / 2) * years + volatility * math.sqrt(years) * normal)
        total += xp.maximum(price - strike, 0)
    return (total / paths * xp.exp(-rate * years),)


def make_membrane(cuda):
    @cuda.jit(device=True)
    def slope(y, dy, current):
        v = y[0]
        dy[0] = v - v * v * v / np.float32(3) - y[1] + y[2] + current
        dy[1] = np.float32(0.08) * (v + np.float32(0.7) - np.float32(0.8) * y[1])
        dy[2] = np.float32(0.02) * (np.float32(-0.775) - v - np.float32(0.7) * y[2])
        gate = ONE / (ONE + math.exp(-v * TWO))
        dy[3] = np.float32(0.1) * (gate - y[3])

    @cuda.jit
    def membrane(initial, currents, dt, steps, out):
        i = cuda.grid(1)
        if i < currents.size:
            y = cuda.local.array(4, np.float32)
            trial = cuda.local.array(4, np.float32)
            k1 = cuda.local.array(4, np.float32)
            k2 = cuda.local.array(4, np.float32)
            k3 = cuda.local.array(4, np.float32)
            k4 = cuda.local.array(4, np.float32)
            for d in range(4):
                y[d] = initial[d, i]
            for _ in range(steps):
                slope(y, k1, currents[i])
                for d in range(4):
                    trial[d] = y[d] + HALF * dt * k1[d]
                slope(trial, k2, currents[i])
                for d in range(4):
                    trial[d] = y[d] + HALF * dt * k2[d]
                slope(trial, k3, currents[i])
                for d in range(4):
                    trial[d] = y[d] + dt * k3[d]
                slope(trial, k4, currents[i])
                for d in range(4):
                    y[d] += dt / np.float32(6) * (k1[d] + TWO * k2[d] + TWO * k3[d] + k4[d])
            for d in range(4):
                out[d, i] = y[d]

    return membrane


def membrane_work(size: str):
    n, steps = sized(size, (4096, 100), (300, 20))
    args = (random(323, 4, n), random(324, n), np.float32(0.05), np.int32(steps), np.empty((4, n), np.float32))
    return given((blocks(n, 64),), (64,), args, (4,), (n,))


def membrane_reference(xp, args):
    y, current, dt = (each.astype(xp.float64) for each in args[:3])

    def slope(y):
        v, w, z, gate = y
        return xp.stack([
            v - v**3 / 3 - w + z + current, 0.08 * (v + 0.7 - 0.8 * w), 0.02 * (-0.775 - v - 0.7 * z),
            0.1 * (1 / (1 + xp.exp(-2 * v)) - gate),
        ])  # fmt: skip

    for _ in range(int(args[3])):
        k1 = slope(y)
        k2 = slope(y + dt / 2 * k1)
        k3 = slope(y + dt / 2 * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return (y,)


def make_queens(cuda):
    @cuda.jit
    def queens(n, counts):
        start = cuda.grid(1)
        if start < n * n:
            columns = cuda.local.array(16, np.int32)
            columns[0] = start // n
            columns[1] = start % n
            found = 0
            if abs(columns[0] - columns[1]) > 1:
                row = 2
                columns[2] = -1
                while row >= 2:
                    columns[row] += 1
                    if columns[row] >= n:
                        row -= 1
                    else:
                        free = True
                        for k in range(row):
                            gap = columns[row] - columns[k]
                            if gap == 0 or abs(gap) == row - k:
                                free = False
                                break
                        if free:
                            if row == n - 1:
                                found += 1
                            else:
                                row += 1
                                columns[row] = -1
            counts[start] = found

    return queens


def queens_work(size: str):
    n = sized(size, 10, 6)
    return given((blocks(n * n, 32),), (32,), (np.int32(n), np.empty(n * n, np.int32)), (1,), ())


def solutions(n: int, placed: tuple[int, ...]) -> int:
    if len(placed) == n:
        return 1
    row = len(placed)
    free = [c for c in range(n) if all(c != p and abs(c - p) != row - k for k, p in enumerate(placed))]
    return sum(solutions(n, (*placed, c)) for c in free)


def queens_reference(xp, args):
    n = int(args[0])
    return (xp.array([solutions(n, (a, b)) if abs(a - b) > 1 else 0 for a in range(n) for b in range(n)]),)


def make_words(cuda):
    @cuda.jit
    def levenshtein(words, lengths, query, distances):
        i = cuda.grid(1)
        if i < lengths.size:
            row = cuda.local.array(LONGEST + 1, np.int32)
            length = lengths[i]
            for k in range(length + 1):
                row[k] = k
            for j in range(query.size):
                diagonal = row[0]
                row[0] = j + 1
                for k in range(length):
                    cost = 0 if words[i, k] == query[j] else 1
                    best = min(min(row[k] + 1, row[k + 1] + 1), diagonal + cost)
                    diagonal = row[k + 1]
                    row[k + 1] = best
            distances[i] = row[length]

    return levenshtein


def words_work(size: str):
    n = sized(size, 1 << 15, 300)
    numbers = np.random.default_rng(325)
    args = (random_bytes(326, n, LONGEST) % np.uint8(4), numbers.integers(4, LONGEST + 1, n, dtype=np.int32),
            random_bytes(327, 12) % np.uint8(4), np.empty(n, np.int32))  # fmt: skip
    return given((blocks(n, 128),), (128,), args, (3,), (n, 12))


def words_reference(xp, args):
    words, lengths, query, _ = args
    rows = xp.tile(xp.arange(LONGEST + 1), (lengths.size, 1))
    for j in range(query.size):
        new = xp.empty_like(rows)
        new[:, 0] = j + 1
        for k in range(LONGEST):
            change = rows[:, k] + (words[:, k] != query[j])
            new[:, k + 1] = xp.minimum(xp.minimum(new[:, k], rows[:, k + 1]) + 1, change)
        rows = new
    return (rows[xp.arange(lengths.size), lengths],)


CASES = (
    on_cpu("options by Monte-Carlo", make_options, options_work, options_reference, tolerance=1e-4),
    on_cpu("membranes by Runge-Kutta", make_membrane, membrane_work, membrane_reference, tolerance=1e-4),
    on_cpu("queens by backtracking", make_queens, queens_work, queens_reference, tolerance=0.0),
    on_cpu("Levenshtein, a thread a word", make_words, words_work, words_reference, tolerance=0.0, wider=True),
)
