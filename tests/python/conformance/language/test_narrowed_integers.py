"""Integers of which only 32 bits are used, and short branches for one value: a GPU uses 32 bits, and selects."""

import numpy as np
import pytest
from harness import run
from weft import cuda

RNG = np.random.default_rng(5)


@cuda.jit
def sums(values, scale, int32, uint8, int64):
    i = cuda.grid(1)
    half = 0
    byte = 1
    whole = 0
    both = 0
    for k in range(values.shape[0]):
        half += values[k] * scale
        byte = (byte * 3 + (half << 5)) ^ values[k] - i
        whole += values[k] * scale
        both -= values[k]
        if both < -(2**31) - 5:
            half = ~half
    int32[i] = half if k % 2 else -half
    uint8[i] = byte
    int64[i] = whole + both
    int32[i + 4] = both
    int32[i + 8] = int32[i] + (whole & 0x1_FFFF_FFFF) * (both | 7)


@pytest.mark.parametrize("scale", [1, -3, 2**31 - 1, 2**33 + 1, 2**62])
def test_sums_that_pass_32_bits(scale):
    values = RNG.integers(-(2**31), 2**31, 13, dtype=np.int32)
    run(sums, 1, 4, values, np.int64(scale), np.zeros(12, np.int32), np.zeros(4, np.uint8), np.zeros(4, np.int64))


@cuda.jit
def divided(values, out):
    i = cuda.grid(1)
    total = 0
    least = 0
    shifted = 1
    for k in range(values.shape[0]):
        total += values[k] * 4
        least = min(least, total)
        shifted = shifted << values[k] & 63
    # These need the upper half, too.
    out[i, 0] = total // 3
    out[i, 1] = total % 1000
    out[i, 2] = total >> 4
    out[i, 3] = least
    out[i, 4] = total > 0
    out[i, 5] = np.float32(total)
    out[i, 6] = abs(total)
    # This does not.
    out[i, 7] = total + shifted


def test_what_needs_all_bits_has_them():
    values = np.full(11, 2**31 - 1, np.int64)
    values[5:] = RNG.integers(-(2**31), 2**31, 6)
    run(divided, 1, 2, values, np.zeros((2, 8), np.int32))


@cuda.jit
def generators(seeds, steps, out, distances):
    i = cuda.grid(1)
    state = seeds[i]
    wide = seeds[i]
    x = 0
    y = 0
    for _ in range(steps):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        wide = (wide * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        direction = state >> 30
        if direction == 0:
            x += 1
        elif direction == 1:
            x -= 1
        elif direction == 2:
            y += 1
        else:
            y -= 1
    out[i, 0] = state
    out[i, 1] = wide >> 33
    out[i, 2] = state // 7
    distances[i] = x * x + y * y


def test_generators():
    seeds = RNG.integers(0, 2**32, 8, dtype=np.uint32)
    run(generators, 2, 4, seeds, 50, np.zeros((8, 3), np.int64), np.zeros(8, np.int32))


@cuda.jit
def arms(steps, out):
    i = cuda.grid(1)
    x = i
    y = 1
    z = 0.5
    for k in range(steps.shape[0]):
        step = steps[k] + i
        if step == 0:
            x += 1
        elif step == 1 or step == 5:
            x -= y
        elif step == 2:
            y = x * 3 ^ y
        elif step == -7:
            pass
        else:
            y += 2
        if step == 1:
            z += 0.25
        elif step == 3:
            z = -z
        if step == 2:
            out[i, 3] += 1
        elif step == 4:
            x = 0
    out[i, 0] = x
    out[i, 1] = y
    out[i, 2] = z * 8


def test_short_arms():
    steps = RNG.integers(-8, 8, 40).astype(np.int64)
    run(arms, 1, 8, steps, np.zeros((8, 4), np.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clamped_floats_as_indices(dtype):
    @cuda.jit
    def binned(x, scale, table, out):
        i = cuda.grid(1)
        if i < x.size:
            column = min(max(int(x[i] * scale), 0), 31)
            row = max(min(int(x[i]), 30), -1) + 1
            out[i] = table[column] * 100 + table[row] + column

    x = np.array(
        [np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, -(2.0**31) - 5, 2.0**33 + 3, -0.5, 30.99, 31, 32], dtype
    )
    x = np.concatenate([x, RNG.uniform(-40, 40, 500).astype(dtype)])
    table = RNG.permutation(32)
    run(binned, 4, 128, x, dtype(0.9), table, np.zeros(x.size, np.int64))
