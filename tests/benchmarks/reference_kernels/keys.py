"""Integers as keys, as loops for Numba: k-mers counted in a hash table, by one thread, and xxHash of records."""

import numpy as np
from fourth.keys import EMPTY, PRIME1, PRIME2, PRIME3, PRIME4, PRIME5, K

from reference_kernels.jit import alone, loops, prange

MOST = np.uint32((1 << 2 * K) - 1)
NONE = np.uint32(EMPTY)


@alone
def mixed(key):
    key = np.uint32(key ^ (key >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    key = np.uint32(key ^ (key >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.uint32(key ^ (key >> np.uint32(16)))


@alone
def count_kmers(letters, keys, counts):
    mask = np.uint32(keys.size - 1)
    forward = np.uint32(0)
    backward = np.uint32(0)
    length = 0
    for i in range(letters.size):
        letter = np.uint32(letters[i])
        if letter > 3:
            length = 0
            continue
        forward = np.uint32((forward << np.uint32(2) | letter) & MOST)
        backward = np.uint32(backward >> np.uint32(2) | np.uint32(3 - letter) << np.uint32(2 * K - 2))
        length += 1
        if length >= K:
            key = min(forward, backward)
            slot = np.uint32(mixed(key) & mask)
            while keys[slot] != NONE and keys[slot] != key:
                slot = np.uint32((slot + np.uint32(1)) & mask)
            keys[slot] = key
            counts[slot] += np.uint32(1)


@alone
def rotated(value, bits):
    return np.uint32(value << np.uint32(bits) | value >> np.uint32(32 - bits))


@alone
def rounded(accumulator, word):
    return np.uint32(rotated(np.uint32(accumulator + word * PRIME2), 13) * PRIME1)


@alone
def word_at(data, i):
    low = np.uint32(data[i]) | np.uint32(data[i + 1]) << np.uint32(8)
    return np.uint32(low | np.uint32(data[i + 2]) << np.uint32(16) | np.uint32(data[i + 3]) << np.uint32(24))


@loops
def xxhash32(data, offsets, seed, out):
    for record in prange(out.size):
        i = offsets[record]
        end = offsets[record + 1]
        length = end - i
        h = np.uint32(seed + PRIME5)
        if length >= 16:
            a = np.uint32(seed + PRIME1 + PRIME2)
            b = np.uint32(seed + PRIME2)
            c = np.uint32(seed)
            d = np.uint32(seed - PRIME1)
            while i + 16 <= end:
                a = rounded(a, word_at(data, i))
                b = rounded(b, word_at(data, i + 4))
                c = rounded(c, word_at(data, i + 8))
                d = rounded(d, word_at(data, i + 12))
                i += 16
            h = np.uint32(rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18))
        h = np.uint32(h + np.uint32(length))
        while i + 4 <= end:
            h = np.uint32(rotated(np.uint32(h + word_at(data, i) * PRIME3), 17) * PRIME4)
            i += 4
        while i < end:
            h = np.uint32(rotated(np.uint32(h + np.uint32(data[i]) * PRIME5), 11) * PRIME1)
            i += 1
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * PRIME2)
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * PRIME3)
        out[record] = h ^ (h >> np.uint32(16))
