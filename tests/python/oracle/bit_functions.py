"""Functions of bits, and `fma`, for the oracle of the random programs: on Python's integers and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def bits(item: np.integer) -> str:
    """An integer's bits, most significant first."""
    width = 8 * item.dtype.itemsize
    return format(int(item) & ((1 << width) - 1), f"0{width}b")


def brev(item: np.integer) -> np.integer:
    """The bits in reverse order, as an unsigned number."""
    return np.dtype(f"u{item.dtype.itemsize}").type(int(bits(item)[::-1], 2))


def byte_perm(x: object, y: object, chosen: object) -> np.uint32:
    """Selects four of eight bytes."""
    both = int(y) << 32 | int(x)
    return np.uint32(sum((both >> 8 * (int(chosen) >> 4 * at & 7) & 255) << 8 * at for at in range(4)))


def funnel(right: bool, clamped: bool):
    """A funnel shift: shifts 64 bits and returns 32 of them."""

    def shift(low: object, high: object, by: object) -> np.uint32:
        both, by = int(high) << 32 | int(low), min(int(by), 32) if clamped else int(by) % 32
        return np.uint32((both >> by if right else both << by >> 32) & 0xFFFFFFFF)

    return shift


def fma(x: np.floating, y: np.floating, z: np.floating) -> np.floating:
    """`x * y + z`, rounded once."""
    kind = x.dtype.type
    with np.errstate(all="ignore"):
        plain = x * y + z
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            return plain
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if not exact:
            return plain if float(x) == 0 or float(y) == 0 else kind(0)
        try:
            near = kind(float(exact))
        except OverflowError:
            return kind(np.inf if exact > 0 else -np.inf)
        if not np.isfinite(near):
            return near
        # A float64 that is halfway between two float32 may have been rounded there.
        around = [near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))]
        able = [each for each in around if np.isfinite(each)]
        least = min(abs(Fraction(float(each)) - exact) for each in able)
        best = [each for each in able if abs(Fraction(float(each)) - exact) == least]
        even = [each for each in best if int(each.view(f"u{each.itemsize}")) % 2 == 0]
        return (even if len(best) > 1 else best)[0]


def store(array: np.ndarray, index: object, item: object) -> None:
    """An element's store."""
    from oracle import numeric

    array[index] = numeric.cast(item, array.dtype.type)


def load(array: np.ndarray, index: object) -> object:
    """An element."""
    return array[index]


def count(item: np.integer, which: str) -> np.integer:
    """Functions of bits: the number of set bits, zeros before the first, the position of the last."""
    text = bits(item)
    found = {"popc": text.count("1"), "clz": (text + "1").index("1"), "ffs": text[::-1].find("1") + 1}[which]
    return np.uint32(found) if which == "ffs" else item.dtype.type(found)


WORDS = {
    "popc": lambda item: count(item, "popc"), "clz": lambda item: count(item, "clz"),
    "ffs": lambda item: count(item, "ffs"), "brev": brev, "byte_perm": byte_perm, "fma": fma,
    "funnelshift_l": funnel(False, False), "funnelshift_lc": funnel(False, True),
    "funnelshift_r": funnel(True, False), "funnelshift_rc": funnel(True, True),
    "selp": lambda test, one, two: one if test else two,
    **dict.fromkeys(("ldca", "ldcg", "ldcs", "ldlu", "ldcv"), load),
    **dict.fromkeys(("stcg", "stcs", "stwb", "stwt"), store),
}  # fmt: skip
