"""Blocks of a signal and messages: DCT of 8x8, Haar's wavelet, an AES-like cipher by tables, SHA-256."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from suite.case import blocks, random, random_bytes, sized

from third.forms import given, on_cpu

ZERO = np.float32(0)
ROOT = np.float32(math.sqrt(0.5))
ANGLES = np.outer(np.arange(8), 2 * np.arange(8) + 1) * (math.pi / 16)
COSINES = (np.cos(ANGLES) * np.sqrt(np.where(np.arange(8) == 0, 1, 2) / 8)[:, None]).astype(np.float32)


def make_dct(cuda):
    @cuda.jit
    def dct(image, cosines, out):
        block = cuda.shared.array((8, 8), np.float32)
        between = cuda.shared.array((8, 8), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x, y = cuda.grid(2)
        block[ty, tx] = image[y, x]
        cuda.syncthreads()
        total = ZERO
        for k in range(8):
            total += cosines[ty, k] * block[k, tx]
        between[ty, tx] = total
        cuda.syncthreads()
        total = ZERO
        for k in range(8):
            total += between[ty, k] * cosines[tx, k]
        out[y, x] = total

    return dct


def dct_work(size: str):
    height, width = sized(size, (1024, 1024), (24, 48))
    args = (random(310, height, width), COSINES, np.empty((height, width), np.float32))
    return given((width // 8, height // 8), (8, 8), args, (2,), (height, width))


def dct_reference(xp, args):
    image, cosines = args[0].astype(xp.float64), args[1].astype(xp.float64)
    height, width = image.shape
    tiles = image.reshape(height // 8, 8, width // 8, 8).transpose(0, 2, 1, 3)
    return ((cosines @ tiles @ cosines.T).transpose(0, 2, 1, 3).reshape(height, width),)


def make_haar(cuda):
    @cuda.jit
    def haar(signal, details, approximation, levels):
        data = cuda.shared.array(512, np.float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        half = signal.size // 2
        left = signal[2 * i]
        right = signal[2 * i + 1]
        details[half + i] = (left - right) * ROOT
        data[tid] = (left + right) * ROOT
        cuda.syncthreads()
        count = cuda.blockDim.x // 2
        start = half // 2
        per_block = cuda.blockDim.x // 2
        for _ in range(1, levels):
            if tid < count:
                left = data[2 * tid]
                right = data[2 * tid + 1]
                details[start + cuda.blockIdx.x * per_block + tid] = (left - right) * ROOT
            cuda.syncthreads()
            if tid < count:
                data[tid] = (left + right) * ROOT
            cuda.syncthreads()
            count //= 2
            per_block //= 2
            start //= 2
        if tid == 0:
            approximation[cuda.blockIdx.x] = data[0]

    return haar


def haar_work(size: str):
    n = sized(size, 1 << 22, 4096)
    args = (random(311, n), np.zeros(n, np.float32), np.empty(n // 1024, np.float32), np.int32(10))
    return given((n // 1024,), (512,), args, (1, 2), (n,), in_place=(1,))


def haar_reference(xp, args):
    signal, details = args[0].astype(xp.float64), args[1].astype(xp.float64)
    for _ in range(int(args[3])):
        left, right = signal[::2], signal[1::2]
        details[left.size : 2 * left.size] = (left - right) * math.sqrt(0.5)
        signal = (left + right) * math.sqrt(0.5)
    return details, signal


def cipher_tables():
    """The four tables of AES: a substitution and a row of the mixing matrix in one step."""
    box, p, q = [0] * 256, 1, 1
    while True:
        p = (p ^ (p << 1) ^ (0x1B if p & 0x80 else 0)) & 0xFF
        for shift in (1, 2, 4):
            q = (q ^ (q << shift)) & 0xFF
        q ^= 0x09 if q & 0x80 else 0
        box[p] = q ^ 0x63
        for shift in range(1, 5):
            box[p] ^= ((q << shift) | (q >> (8 - shift))) & 0xFF
        if p == 1:
            break
    box[0] = 0x63
    rows = []
    for value in box:
        double = (value << 1) ^ (0x11B if value & 0x80 else 0)
        rows.append((double << 24) | (value << 16) | (value << 8) | (double ^ value))
    first = np.array(rows, np.uint32)
    turned = [(first >> np.uint32(8 * k)) | (first << np.uint32(32 - 8 * k)) for k in range(1, 4)]
    return np.stack([first, *turned])


TABLES = cipher_tables()


def make_cipher(cuda):
    @cuda.jit
    def cipher(words, tables, keys, out):
        t = cuda.shared.array((4, 256), np.uint32)
        tid = cuda.threadIdx.x
        for k in range(4):
            t[k, tid] = tables[k, tid]
        cuda.syncthreads()
        i = cuda.grid(1)
        if i < words.shape[0]:
            a = words[i, 0] ^ keys[0]
            b = words[i, 1] ^ keys[1]
            c = words[i, 2] ^ keys[2]
            d = words[i, 3] ^ keys[3]
            for turn in range(1, 10):
                e = t[0, a >> 24] ^ t[1, (b >> 16) & 255] ^ t[2, (c >> 8) & 255] ^ t[3, d & 255] ^ keys[4 * turn]
                f = t[0, b >> 24] ^ t[1, (c >> 16) & 255] ^ t[2, (d >> 8) & 255] ^ t[3, a & 255] ^ keys[4 * turn + 1]
                g = t[0, c >> 24] ^ t[1, (d >> 16) & 255] ^ t[2, (a >> 8) & 255] ^ t[3, b & 255] ^ keys[4 * turn + 2]
                h = t[0, d >> 24] ^ t[1, (a >> 16) & 255] ^ t[2, (b >> 8) & 255] ^ t[3, c & 255] ^ keys[4 * turn + 3]
                a, b, c, d = e, f, g, h
            out[i, 0] = a
            out[i, 1] = b
            out[i, 2] = c
            out[i, 3] = d

    return cipher


def cipher_work(size: str):
    n = sized(size, 1 << 17, 700)
    numbers = np.random.default_rng(312)
    args = (numbers.integers(0, 1 << 32, (n, 4), dtype=np.uint32), TABLES,
            numbers.integers(0, 1 << 32, 40, dtype=np.uint32), np.empty((n, 4), np.uint32))  # fmt: skip
    return given((blocks(n, 256),), (256,), args, (3,), (n,))


def cipher_reference(xp, args):
    words, tables, keys, _ = args
    state = words ^ keys[:4]
    for turn in range(1, 10):
        around = [xp.roll(state, -k, axis=1) for k in range(4)]
        new = keys[4 * turn : 4 * turn + 4][None]
        for k in range(4):
            new = new ^ tables[k, (around[k] >> xp.uint32(24 - 8 * k)) & 255]
        state = new
    return (state,)


def first_bits(root: float, count: int) -> list[int]:
    """The first 32 bits after the binary point of that root of each of the first primes, exactly."""
    primes, n = [], 2
    while len(primes) < count:
        if all(n % p for p in primes):
            primes.append(n)
        n += 1
    power = round(1 / root)
    found = []
    for p in primes:
        low, high = 0, p << 32
        while low < high:  # the largest whole x with x**power <= p * 2**(32 * power)
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**power <= p << (32 * power) else (low, middle - 1)
        found.append(low & 0xFFFFFFFF)
    return found


ROUNDS = np.array(first_bits(1 / 3, 64), np.uint32)
START = np.array(first_bits(1 / 2, 8), np.uint32)


def make_sha(cuda):
    @cuda.jit(device=True)
    def rotate(x, n):
        return np.uint32((x >> n) | (x << (32 - n)))

    @cuda.jit
    def sha256(messages, digests):
        rounds = cuda.const.array_like(ROUNDS)
        start = cuda.const.array_like(START)
        i = cuda.grid(1)
        if i < messages.shape[0]:
            w = cuda.local.array(64, np.uint32)
            for t in range(16):
                w[t] = messages[i, t]
            for t in range(16, 64):
                s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ (w[t - 15] >> 3)
                s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ (w[t - 2] >> 10)
                w[t] = w[t - 16] + s0 + w[t - 7] + s1
            a = start[0]
            b = start[1]
            c = start[2]
            d = start[3]
            e = start[4]
            f = start[5]
            g = start[6]
            h = start[7]
            for t in range(64):
                s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
                choice = (e & f) ^ (~e & g)
                t1 = np.uint32(h + s1 + choice + rounds[t] + w[t])
                s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
                majority = (a & b) ^ (a & c) ^ (b & c)
                h = g
                g = f
                f = e
                e = np.uint32(d + t1)
                d = c
                c = b
                b = a
                a = np.uint32(t1 + s0 + majority)
            digests[i, 0] = start[0] + a
            digests[i, 1] = start[1] + b
            digests[i, 2] = start[2] + c
            digests[i, 3] = start[3] + d
            digests[i, 4] = start[4] + e
            digests[i, 5] = start[5] + f
            digests[i, 6] = start[6] + g
            digests[i, 7] = start[7] + h

    return sha256


def sha_work(size: str):
    """Messages of 55 bytes, padded to a block: followed by a 1 bit, with the length in bits at the end."""
    n = sized(size, 1 << 15, 300)
    padded = np.zeros((n, 64), np.uint8)
    padded[:, :55] = random_bytes(313, n, 55)
    padded[:, 55] = 0x80
    padded[:, 62:] = (55 * 8).to_bytes(2, "big")[0], (55 * 8).to_bytes(2, "big")[1]
    args = (padded.view(">u4").astype(np.uint32), np.empty((n, 8), np.uint32))
    return given((blocks(n, 128),), (128,), args, (1,), (n,))


def sha_reference(xp, args):
    texts = args[0].astype(">u4").view(np.uint8)[:, :55]
    found = b"".join(hashlib.sha256(text.tobytes()).digest() for text in texts)
    return (np.frombuffer(found, ">u4").reshape(-1, 8).astype(np.int64),)


CASES = (
    on_cpu("DCT of 8x8", make_dct, dct_work, dct_reference),
    on_cpu("Haar's wavelet", make_haar, haar_work, haar_reference),
    on_cpu("cipher by tables", make_cipher, cipher_work, cipher_reference, tolerance=0.0),
    on_cpu("SHA-256 of messages", make_sha, sha_work, sha_reference, tolerance=0.0, wider=True),
)
