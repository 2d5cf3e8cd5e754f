"""Floats of 8 bits: all values of both formats, and rounding to them, by their definition."""

import numpy as np

# Exponent bits, fraction bits, the bias, and the bits of the largest finite number.
FORMATS = {"e4m3": (4, 3, 7, 0x7E), "e5m2": (5, 2, 15, 0x7B)}
NAN = 0x7F


def values(name: str) -> np.ndarray:
    """The 256 values of a format, as float64."""
    exponent_bits, fraction_bits, bias, largest = FORMATS[name]
    found = np.empty(256)
    for bits in range(256):
        field, fraction = bits >> fraction_bits & (1 << exponent_bits) - 1, bits & (1 << fraction_bits) - 1
        magnitude = np.ldexp(fraction + (1 << fraction_bits if field else 0), max(field, 1) - bias - fraction_bits)
        if bits & 0x7F > largest:
            magnitude = np.inf if name == "e5m2" and fraction == 0 else np.nan
        found[bits] = -magnitude if bits & 0x80 else magnitude
    return found


def rounded(name: str, x: np.ndarray) -> np.ndarray:
    """The bits of the nearest numbers, ties to even; larger numbers become the largest one."""
    largest = FORMATS[name][3]
    finite = values(name)[: largest + 1]
    with np.errstate(invalid="ignore"):
        magnitude = np.abs(x.astype(np.float64))
        above = np.searchsorted(finite, np.where(np.isnan(magnitude), 0, magnitude)).clip(1, largest)
        below = above - 1
        down, up = magnitude - finite[below], finite[above] - magnitude
    found = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    found = found | np.where(np.signbit(x), 0x80, 0)
    return np.where(np.isnan(magnitude), NAN, found).astype(np.uint8)
