"""Integers as keys: k-mers of DNA counted in a hash table, and xxHash of records of different lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite.case import Case, Work, blocks, random_bytes, sized

K = 15
EMPTY = 0xFFFFFFFF
PER_THREAD = 8


@dataclass(frozen=True)
class Table(Case):
    """A case whose outputs are the keys and the counts of a hash table; the slots depend on the order of threads."""

    def error(self, xp, outputs, expected):
        def in_order(keys, counts):
            order = xp.argsort(keys)
            return keys[order], counts[order]

        return super().error(xp, in_order(*outputs), in_order(*expected))


def make_count(cuda):
    @cuda.jit(device=True)
    def mixed(key):
        key = np.uint32((key ^ (key >> 16)) * 0x85EBCA6B)
        key = np.uint32((key ^ (key >> 13)) * 0xC2B2AE35)
        return np.uint32(key ^ (key >> 16))

    @cuda.jit
    def count_kmers(letters, keys, counts):
        first = cuda.grid(1) * PER_THREAD
        n = letters.size
        most = np.uint32((1 << 2 * K) - 1)
        mask = np.uint32(keys.size - 1)
        forward = np.uint32(0)
        backward = np.uint32(0)
        length = 0
        for i in range(first, min(first + PER_THREAD + K - 1, n)):
            letter = letters[i]
            if letter > 3:
                length = 0
                continue
            forward = np.uint32((forward << 2 | letter) & most)
            backward = np.uint32(backward >> 2 | np.uint32(3 - letter) << (2 * K - 2))
            length += 1
            if length >= K:
                key = min(forward, backward)
                slot = np.uint32(mixed(key) & mask)
                while True:
                    old = cuda.atomic.cas(keys, slot, EMPTY, key)
                    if old == EMPTY or old == key:
                        cuda.atomic.add(counts, slot, 1)
                        break
                    slot = np.uint32((slot + 1) & mask)

    return count_kmers


COUNT_CPP = f"""
#define K {K}
#define EMPTY 0xffffffffu
#define PER_THREAD {PER_THREAD}
__device__ unsigned int mixed(unsigned int key) {{
    key = (key ^ (key >> 16)) * 0x85ebca6bu;
    key = (key ^ (key >> 13)) * 0xc2b2ae35u;
    return key ^ (key >> 16);
}}

extern "C" __global__ void peer(const unsigned char* letters, unsigned int* keys, unsigned int* counts, int n,
                                int slots) {{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER_THREAD, length = 0;
    unsigned int most = (1u << 2 * K) - 1, mask = slots - 1, forward = 0, backward = 0;
    int end = min(first + PER_THREAD + K - 1, n);
    for (int i = first; i < end; ++i) {{
        unsigned char letter = letters[i];
        if (letter > 3) {{
            length = 0;
            continue;
        }}
        forward = (forward << 2 | letter) & most;
        backward = backward >> 2 | (unsigned int)(3 - letter) << (2 * K - 2);
        ++length;
        if (length >= K) {{
            unsigned int key = min(forward, backward), slot = mixed(key) & mask;
            while (true) {{
                unsigned int old = atomicCAS(&keys[slot], EMPTY, key);
                if (old == EMPTY || old == key) {{
                    atomicAdd(&counts[slot], 1u);
                    break;
                }}
                slot = (slot + 1) & mask;
            }}
        }}
    }}
}}
"""


def count_work(size: str) -> Work:
    n, slots = sized(size, (1 << 22, 1 << 22), (3001, 4096), cpu=(1 << 19, 1 << 19))
    numbers = np.random.default_rng(380)
    # Reads of a genome: each part of it is there about four times. A few letters are unknown.
    genome, length = numbers.integers(0, 4, n // 4, dtype=np.uint8), 100
    starts = numbers.integers(0, genome.size - length, blocks(n, length))
    letters = genome[starts[:, None] + np.arange(length)].ravel()[:n]
    letters[numbers.integers(0, n, n // 500)] = 4
    return Work(
        grid=(blocks(n, 128 * PER_THREAD),),
        block=(128,),
        args=(letters, np.full(slots, EMPTY, np.uint32), np.zeros(slots, np.uint32)),
        outputs=(1, 2),
        extents=(n, slots),
        n_bytes=n + 8 * slots,
        initial={1: np.full(slots, EMPTY, np.uint32), 2: np.zeros(slots, np.uint32)},
    )


def count_reference(xp, args):
    letters, slots = args[0].astype(xp.int64), args[1].size
    window = xp.arange(letters.size - K + 1)[:, None] + xp.arange(K)
    kmers = letters[window]
    kmers = kmers[(kmers < 4).all(axis=1)]
    powers = 4 ** xp.arange(K, dtype=xp.int64)
    canonical = xp.minimum((kmers * powers[::-1]).sum(axis=1), ((3 - kmers) * powers).sum(axis=1))
    found, times = xp.unique(canonical, return_counts=True)
    keys, counts = xp.full(slots, EMPTY, xp.int64), xp.zeros(slots, xp.int64)
    keys[: found.size], counts[: found.size] = found, times
    return keys, counts


PRIMES = tuple(map(np.uint32, (2654435761, 2246822519, 3266489917, 668265263, 374761393)))
PRIME1, PRIME2, PRIME3, PRIME4, PRIME5 = PRIMES


def make_xxhash(cuda):
    @cuda.jit(device=True)
    def rotated(value, bits):
        return np.uint32(value << bits | value >> (32 - bits))

    @cuda.jit(device=True)
    def rounded(accumulator, word):
        return np.uint32(rotated(np.uint32(accumulator + word * PRIME2), 13) * PRIME1)

    @cuda.jit(device=True)
    def word_at(data, i):
        low = np.uint32(data[i]) | np.uint32(data[i + 1]) << 8
        return np.uint32(low | np.uint32(data[i + 2]) << 16 | np.uint32(data[i + 3]) << 24)

    @cuda.jit
    def xxhash32(data, offsets, seed, out):
        record = cuda.grid(1)
        if record >= out.size:
            return
        i = offsets[record]
        end = offsets[record + 1]
        length = end - i
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
        else:
            h = np.uint32(seed + PRIME5)
        h = np.uint32(h + length)
        while i + 4 <= end:
            h = np.uint32(rotated(np.uint32(h + word_at(data, i) * PRIME3), 17) * PRIME4)
            i += 4
        while i < end:
            h = np.uint32(rotated(np.uint32(h + data[i] * PRIME5), 11) * PRIME1)
            i += 1
        h = np.uint32((h ^ (h >> 15)) * PRIME2)
        h = np.uint32((h ^ (h >> 13)) * PRIME3)
        out[record] = h ^ (h >> 16)

    return xxhash32


XXHASH_CPP = """
#define PRIME1 2654435761u
#define PRIME2 2246822519u
#define PRIME3 3266489917u
#define PRIME4 668265263u
#define PRIME5 374761393u
__device__ unsigned int rotated(unsigned int value, int bits) { return value << bits | value >> (32 - bits); }

__device__ unsigned int rounded(unsigned int accumulator, unsigned int word) {
    return rotated(accumulator + word * PRIME2, 13) * PRIME1;
}

__device__ unsigned int word_at(const unsigned char* data, int i) {
    return data[i] | data[i + 1] << 8 | data[i + 2] << 16 | (unsigned int)data[i + 3] << 24;
}

extern "C" __global__ void peer(const unsigned char* data, const int* offsets, unsigned int seed, unsigned int* out,
                                int n) {
    int record = blockIdx.x * blockDim.x + threadIdx.x;
    if (record >= n) return;
    int i = offsets[record], end = offsets[record + 1], length = end - i;
    unsigned int h;
    if (length >= 16) {
        unsigned int a = seed + PRIME1 + PRIME2, b = seed + PRIME2, c = seed, d = seed - PRIME1;
        while (i + 16 <= end) {
            a = rounded(a, word_at(data, i));
            b = rounded(b, word_at(data, i + 4));
            c = rounded(c, word_at(data, i + 8));
            d = rounded(d, word_at(data, i + 12));
            i += 16;
        }
        h = rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18);
    } else {
        h = seed + PRIME5;
    }
    h += length;
    while (i + 4 <= end) {
        h = rotated(h + word_at(data, i) * PRIME3, 17) * PRIME4;
        i += 4;
    }
    while (i < end) {
        h = rotated(h + data[i] * PRIME5, 11) * PRIME1;
        i += 1;
    }
    h = (h ^ (h >> 15)) * PRIME2;
    h = (h ^ (h >> 13)) * PRIME3;
    out[record] = h ^ (h >> 16);
}
"""


def xxhash_work(size: str) -> Work:
    n, longest = sized(size, (1 << 19, 100), (300, 70), cpu=(1 << 19, 100))
    offsets = np.zeros(n + 1, np.int32)
    np.cumsum(np.random.default_rng(381).integers(0, longest + 1, n), out=offsets[1:])
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(random_bytes(382, int(offsets[-1])), offsets, np.uint32(7), np.empty(n, np.uint32)),
        outputs=(3,),
        extents=(n,),
        n_bytes=int(offsets[-1]) + 8 * n,
    )


def xxhash_reference(xp, args):
    data, offsets, seed, _ = (each.get() if hasattr(each, "get") else each for each in args)
    first, length = offsets[:-1].astype(np.int64), np.diff(offsets)
    data, seed = np.append(data, np.zeros(4, np.uint8)).astype(np.uint32), np.uint32(seed)
    expected = np.full(first.size, seed, np.uint32)

    def rotated(value, bits):
        return value << np.uint32(bits) | value >> np.uint32(32 - bits)

    def word(i):
        i = np.minimum(i, data.size - 4)
        return data[i] | data[i + 1] << 8 | data[i + 2] << 16 | data[i + 3] << 24

    lanes = [expected + PRIME1 + PRIME2, expected + PRIME2, expected, expected - PRIME1]
    for start in range(0, int(length.max()) - 15, 16):
        for k in range(4):
            new = rotated(lanes[k] + word(first + start + 4 * k) * PRIME2, 13) * PRIME1
            lanes[k] = np.where(start + 16 <= length, new, lanes[k])
    long = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    h = np.where(length >= 16, long, expected + PRIME5) + length.astype(np.uint32)
    at = length // 16 * 16
    for _ in range(3):
        h = np.where(at + 4 <= length, rotated(h + word(first + at) * PRIME3, 17) * PRIME4, h)
        at = np.where(at + 4 <= length, at + 4, at)
    for _ in range(3):
        h = np.where(at < length, rotated(h + data[first + at] * PRIME5, 11) * PRIME1, h)
        at = at + 1
    h = (h ^ (h >> np.uint32(15))) * PRIME2
    h = (h ^ (h >> np.uint32(13))) * PRIME3
    return (xp.asarray(h ^ (h >> np.uint32(16))),)


CASES = (
    Table(
        "k-mers in a hash table",
        make_count,
        "void(uint8[::1], uint32[::1], uint32[::1])",
        COUNT_CPP,
        count_work,
        count_reference,
        tolerance=0.0,
    ),
    Case(
        "xxHash of records",
        make_xxhash,
        "void(uint8[::1], int32[::1], uint32, uint32[::1])",
        XXHASH_CPP,
        xxhash_work,
        xxhash_reference,
        tolerance=0.0,
    ),
)
