"""bfloat16 in the oracle: a rounded float32, and arrays of bits."""

from __future__ import annotations

import numpy as np


class Brains(np.ndarray):
    """An array of uint16 that hold the bits of bfloat16."""


def rounded(item: object) -> np.float32:
    """A number as the nearest bfloat16, ties to even, rounded once; as float32."""
    if isinstance(item, np.float32):
        single, lost, down = item, False, False
    else:
        exact = item if isinstance(item, (np.integer, np.bool_)) else np.float64(item)
        with np.errstate(all="ignore"):
            single = np.float32(exact)
        # A value that float32 cannot represent: round it to odd first.
        if np.isfinite(single):
            lost = int(single) != int(exact) if isinstance(exact, np.integer) else float(single) != float(exact)
            down = abs(int(single)) > abs(int(exact)) if isinstance(exact, np.integer) else abs(single) > abs(exact)
        else:
            lost = down = bool(np.isfinite(exact))
    if np.isnan(single):
        return np.float32(np.nan)
    bits = int(single.view(np.uint32)) - bool(down)
    bits |= bool(lost)
    return from_bits((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


REFUSED: list[type[Exception]] = []  # raised if a product is not exact


def product(item: np.float32) -> np.float32:
    """A product of two bfloat16, rounded."""
    result = rounded(item)
    if REFUSED and not (result == item):
        raise REFUSED[0]
    return result


def from_bits(bits: int) -> np.float32:
    """The number whose bits these are."""
    return np.uint32(int(bits) << 16 & 0xFFFFFFFF).view(np.float32)


def to_bits(item: object) -> np.uint16:
    """The bits of the bfloat16 that is nearest to a number."""
    return np.uint16(int(rounded(item).view(np.uint32)) >> 16)
