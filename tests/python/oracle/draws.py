"""`cuda.random` for the oracle of the random programs: the generators by their definitions, with Python integers."""

from __future__ import annotations

import types

import numpy as np

WORD, HALF = (1 << 64) - 1, (1 << 32) - 1


def philox_words(seed: object, sequence: object, offset: object, count: int) -> list[int]:
    """Words of Philox 4x32-10 starting at an offset of a sequence: four words per counter value."""
    seed, sequence, offset = (int(each) & WORD for each in (seed, sequence, offset))
    found = []
    for place in range(offset, offset + count):
        number, low = place >> 2, HALF
        block = [number & low, number >> 32, sequence & low, sequence >> 32]
        keys = [seed & low, seed >> 32]
        for turn in range(10):
            one, two = 0xD2511F53 * block[0], 0xCD9E8D57 * block[2]
            first, second = (
                (key + turn * step) & low for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)
            )
            block = [two >> 32 ^ block[1] ^ first, two & low, one >> 32 ^ block[3] ^ second, one & low]
        found.append(block[place & 3])
    return found


def xoroshiro(states: np.ndarray, index: object) -> int:
    """The next output of a state of xoroshiro128+, which advances."""
    first, second = (int(word) for word in states[int(index)].item())

    def turned(word: int, by: int) -> int:
        return (word << by | word >> 64 - by) & WORD

    mixed = first ^ second
    states[int(index)] = (turned(first, 55) ^ mixed ^ (mixed << 14 & WORD), turned(mixed, 36))
    return (first + second) & WORD


def unit(word: int) -> float:
    """A number from 0 to 1 from the upper 53 bits of a word."""
    return (word >> 11) * 2.0**-53


def single(word: int) -> np.float32:
    """A number above 0 from 32 bits."""
    return np.float32(word) * np.float32(2.0**-32) + np.float32(2.0**-33)


RANDOM = types.SimpleNamespace(
    philox_uint32=lambda *at: np.uint32(philox_words(*at, 1)[0]),
    philox_uint32x4=lambda *at: tuple(map(np.uint32, philox_words(*at, 4))),
    philox_uniform_float32=lambda *at: single(philox_words(*at, 1)[0]),
    philox_uniform_float64=lambda *at: np.float64(philox_words(*at, 1)[0] * 2.0**-32 + 2.0**-32),
    xoroshiro128p_next=lambda states, index: np.uint64(xoroshiro(states, index)),
    xoroshiro128p_uniform_float32=lambda states, index: np.float32(unit(xoroshiro(states, index))),
    xoroshiro128p_uniform_float64=lambda states, index: np.float64(unit(xoroshiro(states, index))),
)
