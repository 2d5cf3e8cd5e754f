"""Random numbers: xoroshiro128+ over an array of states, and Philox 4x32-10 of counters.

Shifts and sums are of unsigned integers of one type, so that no operation promotes to a float or a signed type.
"""

import math

import numpy as np


def rotl(x, k):
    """The bits of `x` rotated to the left; a rotation by 64 is one by 0."""
    return (x << np.uint64(k)) | (x >> (np.uint64(64) - np.uint64(k)))


def uint64_to_unit_float64(x):
    """The upper 53 bits as a fraction."""
    return np.float64(x >> np.uint64(11)) * 1.1102230246251565e-16


def uint64_to_unit_float32(x):
    """The same, rounded, up to 1.0."""
    return np.float32(uint64_to_unit_float64(x))


def init_xoroshiro128p_state(states, index, seed):
    """One step of SplitMix64 from the seed, for both words of the state."""
    z = seed + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    states[index]["s0"] = z
    states[index]["s1"] = z


def xoroshiro128p_next(states, index):
    """The next 64-bit number."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    mixed = s1 ^ s0
    states[index]["s0"] = rotl(s0, 55) ^ mixed ^ (mixed << np.uint64(14))
    states[index]["s1"] = rotl(mixed, 36)
    return s0 + s1


def xoroshiro128p_jump(states, index):
    """XOR of the states at the steps whose bits are set in the jump polynomial."""
    s0 = np.uint64(0)
    s1 = np.uint64(0)
    for step in range(128):
        bits = np.uint64(0xBEAC0467EBA5FACB) if step < 64 else np.uint64(0xD86B048B86AA9922)
        if (bits >> np.uint64(step & 63)) & np.uint64(1):
            s0 ^= states[index]["s0"]
            s1 ^= states[index]["s1"]
        xoroshiro128p_next(states, index)
    states[index]["s0"] = s0
    states[index]["s1"] = s1


def xoroshiro128p_uniform_float32(states, index):
    """A float32 in [0, 1]."""
    return uint64_to_unit_float32(xoroshiro128p_next(states, index))


def xoroshiro128p_uniform_float64(states, index):
    """A float64 in [0, 1)."""
    return uint64_to_unit_float64(xoroshiro128p_next(states, index))


def xoroshiro128p_normal_float32(states, index):
    """One number of a Box-Muller pair."""
    u = xoroshiro128p_uniform_float32(states, index)
    v = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(np.float32(-2.0) * math.log(u)) * math.cos(np.float32(6.283185307179586) * v)


def xoroshiro128p_normal_float64(states, index):
    """The same with the same two float32, and a float32 logarithm; the rest in float64."""
    u = xoroshiro128p_uniform_float32(states, index)
    v = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(6.283185307179586 * v)


def philox4x32_10(c0, c1, c2, c3, k0, k1):
    """Ten rounds, with a new key for each. Words have 32 bits, so that a GPU multiplies 32 by 32 bits."""
    for _ in range(10):
        p = np.uint64(c0) * np.uint64(0xD2511F53)
        q = np.uint64(c2) * np.uint64(0xCD9E8D57)
        c0, c1 = np.uint32(np.uint32(q >> np.uint64(32)) ^ c1 ^ k0), np.uint32(q)
        c2, c3 = np.uint32(np.uint32(p >> np.uint64(32)) ^ c3 ^ k1), np.uint32(p)
        k0, k1 = np.uint32(k0 + np.uint32(0x9E3779B9)), np.uint32(k1 + np.uint32(0xBB67AE85))
    return c0, c1, c2, c3


def philox_block(seed, sequence, number):
    """The four words of a sequence with this block index."""
    c1, c3 = np.uint32(number >> np.uint64(32)), np.uint32(sequence >> np.uint64(32))
    k1 = np.uint32(seed >> np.uint64(32))
    return philox4x32_10(np.uint32(number), c1, np.uint32(sequence), c3, np.uint32(seed), k1)


def philox_uint32(seed, sequence, offset):
    """The 32-bit number of a sequence at an offset."""
    w0, w1, w2, w3 = philox_block(seed, sequence, offset >> np.uint64(2))
    place = offset & np.uint64(3)
    low = w0 if place == np.uint64(0) else w1
    high = w2 if place == np.uint64(2) else w3
    return low if place < np.uint64(2) else high


def philox_uint32x4(seed, sequence, offset):
    """Four words from an offset on, from one block or two."""
    number = offset >> np.uint64(2)
    w0, w1, w2, w3 = philox_block(seed, sequence, number)
    place = offset & np.uint64(3)
    if place == np.uint64(0):
        return w0, w1, w2, w3
    w4, w5, w6, _ = philox_block(seed, sequence, number + np.uint64(1))
    if place == np.uint64(1):
        return w1, w2, w3, w4
    if place == np.uint64(2):
        return w2, w3, w4, w5
    return w3, w4, w5, w6


def philox_uint32x2(seed, sequence, offset):
    """Two words; the second is in the next block if the first is the last of its own."""
    number = offset >> np.uint64(2)
    w0, w1, w2, w3 = philox_block(seed, sequence, number)
    place = offset & np.uint64(3)
    if place == np.uint64(0):
        return w0, w1
    if place == np.uint64(1):
        return w1, w2
    if place == np.uint64(2):
        return w2, w3
    w4, _, _, _ = philox_block(seed, sequence, number + np.uint64(1))
    return w3, w4


def unit_float32(word):
    """A word as a fraction above 0. The product is exact, so that fusing it with the sum has no effect."""
    return np.float32(word) * np.float32(2.3283064365386963e-10) + np.float32(1.1641532182693481e-10)


def unit_float64(low, high):
    """Two words as a 53-bit fraction above 0."""
    word = np.uint64(low) ^ (np.uint64(high) << np.uint64(21))
    return np.float64(word) * 1.1102230246251565e-16 + 5.551115123125783e-17


def philox_uniform_float32(seed, sequence, offset):
    """A float32 in (0, 1]."""
    return unit_float32(philox_uint32(seed, sequence, offset))


def philox_uniform_float32x4(seed, sequence, offset):
    """Four float32 in (0, 1]."""
    w0, w1, w2, w3 = philox_uint32x4(seed, sequence, offset)
    return unit_float32(w0), unit_float32(w1), unit_float32(w2), unit_float32(w3)


def philox_uniform_float64(seed, sequence, offset):
    """A float64 in (0, 1] from one word: the product is exact, so that there is only one rounding."""
    return np.float64(philox_uint32(seed, sequence, offset)) * 2.3283064365386963e-10 + 2.3283064365386963e-10


def philox_uniform_float64x2(seed, sequence, offset):
    """Two float64 in (0, 1], from two words each."""
    w0, w1, w2, w3 = philox_uint32x4(seed, sequence, offset)
    return unit_float64(w0, w1), unit_float64(w2, w3)


def normals_float32(x, y):
    """A Box-Muller pair from two words; the angle is one operation, rounded once."""
    turn = np.float32(1.4629180792671596e-09)
    angle = math.fma(np.float32(y), turn, turn * np.float32(0.5))
    radius = math.sqrt(np.float32(-2.0) * math.log(unit_float32(x)))
    return math.sin(angle) * radius, math.cos(angle) * radius


def normals_float64(w0, w1, w2, w3):
    """The same from four words; the angle is in units of pi, and is reduced before it is rounded."""
    halves = 2.0 * unit_float64(w2, w3)
    radius = math.sqrt(-2.0 * math.log(unit_float64(w0, w1)))
    sign = radius
    if halves > 1.5:
        halves -= 2.0
    elif halves > 0.5:
        halves -= 1.0
        sign = -radius
    return math.sin(math.pi * halves) * sign, math.cos(math.pi * halves) * sign


def philox_normal_float32x2(seed, sequence, offset):
    """Two normal float32."""
    x, y = philox_uint32x2(seed, sequence, offset)
    return normals_float32(x, y)


def philox_normal_float32(seed, sequence, offset):
    """The first number of a pair."""
    first, _ = philox_normal_float32x2(seed, sequence, offset)
    return first


def philox_normal_float32x4(seed, sequence, offset):
    """Four normal float32."""
    w0, w1, w2, w3 = philox_uint32x4(seed, sequence, offset)
    a, b = normals_float32(w0, w1)
    c, d = normals_float32(w2, w3)
    return a, b, c, d


def philox_normal_float64x2(seed, sequence, offset):
    """Two normal float64."""
    w0, w1, w2, w3 = philox_uint32x4(seed, sequence, offset)
    return normals_float64(w0, w1, w2, w3)


def philox_normal_float64(seed, sequence, offset):
    """The first number of a pair."""
    first, _ = philox_normal_float64x2(seed, sequence, offset)
    return first
