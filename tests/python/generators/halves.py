"""float16 and bfloat16 for tests: their values as float32, and numbers rounded to them."""

from __future__ import annotations

import math

import numpy as np

HALVES = ["float16", "bfloat16"]
BITS = np.arange(1 << 16, dtype=np.uint16)


def all_values(name):
    """Every number of a type, as float32."""
    if name == "float16":
        return BITS.view(np.float16).astype(np.float32)
    return (BITS.astype(np.uint32) << 16).view(np.float32)


def rounded(name, exact):
    """Numbers rounded to the nearest of a type, ties to even, as float32; from float64 or Python integers."""
    if name == "float16":
        with np.errstate(all="ignore"):
            return np.asarray(exact, np.float64).astype(np.float16).astype(np.float32)
    exact = np.asarray(exact, np.float64)
    with np.errstate(all="ignore"):
        single = exact.astype(np.float32)
        # Round to odd: set the last bit if any lower bits are lost.
        lost = (single.astype(np.float64) != exact) & ~np.isnan(exact)
        toward = np.where(np.abs(single.astype(np.float64)) > np.abs(exact), -1, 0)
    bits = single.view(np.int32) + np.where(lost, toward, 0).astype(np.int32)
    bits = np.where(lost, bits | 1, bits).astype(np.int64)
    upper = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return np.where(np.isnan(exact), np.float32(np.nan), (upper & 0xFFFFFFFF).astype(np.uint32).view(np.float32))


def blocks(size):
    return (size + 255) // 256


def operands(name):
    """All values paired with other values, and all pairs of edge values."""
    values = all_values(name)
    edges = BITS[[0, 1, 2, 0x7F, 0x80, 0x3FF, 0x400, 0x3C00, 0x3C01, 0x3F80, 0x7BFF, 0x7C00, 0x7E00, 0x7F7F, 0x7F80]]
    edges = values[np.concatenate([edges, edges | 0x8000])]
    first, second = np.meshgrid(edges, edges)
    shuffled = values[np.random.default_rng(7).permutation(BITS)]
    return np.concatenate([values, first.ravel()]), np.concatenate([shuffled, second.ravel()])


def middles(name):
    """The midpoints between adjacent values, and the next values above and below each midpoint."""
    values = np.unique(all_values(name)[np.isfinite(all_values(name))]).astype(np.float64)
    middle = (values[:-1] + values[1:]) / 2
    end = values[-1] + (values[-1] - values[-2]) / 2
    middle = np.concatenate([middle, [end, -end]])
    extremes = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -1e-310, 1.7e308, 1e39, -1e39, 65519.99, 65520.0]
    return np.concatenate([values, middle, np.nextafter(middle, math.inf), np.nextafter(middle, -math.inf), extremes])
