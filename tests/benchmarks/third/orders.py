"""Order and search: a pattern in bytes, merging by ranks, radix counts, sorts and scans in a block, a dot product."""

from __future__ import annotations

import numpy as np
from suite.case import blocks, random, sized

from third.forms import given, on_cpu

ZERO = np.float32(0)


def make_match(cuda):
    @cuda.jit
    def match(text, pattern, found, count):
        i = cuda.grid(1)
        if i <= text.size - pattern.size:
            same = True
            for j in range(pattern.size):
                if text[i + j] != pattern[j]:
                    same = False
                    break
            found[i] = same
            if same:
                cuda.atomic.add(count, 0, 1)

    return match


def match_work(size: str):
    n = sized(size, 1 << 21, 900)
    text = np.random.default_rng(280).choice(np.frombuffer(b"ACGT", np.uint8), n)
    pattern = text[n // 2 : n // 2 + 8].copy()
    args = (text, pattern, np.empty(n, np.bool_), np.empty(1, np.int32))
    return given((blocks(n, 256),), (256,), args, (2, 3), (n, pattern.size))


def match_reference(xp, args):
    text, pattern, found, _ = args
    expected = xp.zeros(found.shape, xp.int32)
    places = text.size - pattern.size + 1
    expected[:places] = xp.all([text[k : k + places] == pattern[k] for k in range(pattern.size)], axis=0)
    return expected, expected.sum(keepdims=True)


def make_merge(cuda):
    @cuda.jit
    def merge(a, b, out):
        i = cuda.grid(1)
        if i < a.size:
            low = 0
            high = b.size
            while low < high:
                middle = (low + high) // 2
                if b[middle] < a[i]:
                    low = middle + 1
                else:
                    high = middle
            out[i + low] = a[i]
        if i < b.size:
            low = 0
            high = a.size
            while low < high:
                middle = (low + high) // 2
                if a[middle] <= b[i]:
                    low = middle + 1
                else:
                    high = middle
            out[i + low] = b[i]

    return merge


def merge_work(size: str):
    n = sized(size, 1 << 17, 700)
    args = (np.sort(random(281, n)), np.sort(random(282, n - 5)), np.empty(2 * n - 5, np.float32))
    return given((blocks(n, 256),), (256,), args, (2,), (n, n - 5))


def merge_reference(xp, args):
    return (xp.sort(xp.concatenate(args[:2])),)


def make_radix(cuda):
    @cuda.jit
    def radix_count(keys, shift, counts):
        bins = cuda.shared.array(16, np.int32)
        tid = cuda.threadIdx.x
        if tid < 16:
            bins[tid] = 0
        cuda.syncthreads()
        for k in range(8):
            i = (cuda.blockIdx.x * 8 + k) * cuda.blockDim.x + tid
            if i < keys.size:
                cuda.atomic.add(bins, (keys[i] >> shift) & 15, 1)
        cuda.syncthreads()
        if tid < 16:
            counts[tid * cuda.gridDim.x + cuda.blockIdx.x] = bins[tid]

    return radix_count


def radix_work(size: str):
    n = sized(size, 1 << 22, 5000)
    keys = np.random.default_rng(283).integers(0, 1 << 32, n, dtype=np.uint32)
    grid = blocks(n, 2048)
    return given((grid,), (256,), (keys, np.int32(8), np.empty(16 * grid, np.int32)), (2,), (n,))


def radix_reference(xp, args):
    keys, shift, counts = args
    grid = counts.size // 16
    digit, block = (keys >> xp.uint32(shift)) & 15, xp.arange(keys.size) // 2048
    return (xp.bincount(digit * grid + block, minlength=counts.size),)


def make_odd_even(cuda):
    @cuda.jit
    def odd_even(x, out):
        values = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        values[tid] = x[i]
        cuda.syncthreads()
        for phase in range(256):
            if tid % 2 == phase % 2 and tid < 255:
                if values[tid] > values[tid + 1]:
                    swap = values[tid]
                    values[tid] = values[tid + 1]
                    values[tid + 1] = swap
            cuda.syncthreads()
        out[i] = values[tid]

    return odd_even


def odd_even_work(size: str):
    n = sized(size, 1 << 17, 1024)
    args = (np.random.default_rng(284).integers(-1000, 1000, n, dtype=np.int32), np.empty(n, np.int32))
    return given((n // 256,), (256,), args, (1,))


def sorted_by_rows(length):
    return lambda xp, args: (xp.sort(args[0].reshape(-1, length), axis=1).ravel(),)


def make_bitonic(cuda):
    @cuda.jit
    def bitonic_block(x, out):
        values = cuda.shared.array(512, np.float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        values[tid] = x[i]
        cuda.syncthreads()
        k = 2
        while k <= 512:
            j = k // 2
            while j > 0:
                partner = tid ^ j
                if partner > tid:
                    if tid & k == 0:
                        if values[tid] > values[partner]:
                            swap = values[tid]
                            values[tid] = values[partner]
                            values[partner] = swap
                    else:
                        if values[tid] < values[partner]:
                            swap = values[tid]
                            values[tid] = values[partner]
                            values[partner] = swap
                cuda.syncthreads()
                j //= 2
            k *= 2
        out[i] = values[tid]

    return bitonic_block


def bitonic_work(size: str):
    n = sized(size, 1 << 19, 1024)
    return given((n // 512,), (512,), (random(285, n), np.empty(n, np.float32)), (1,))


def make_segmented(cuda):
    @cuda.jit
    def segmented(x, heads, out):
        values = cuda.shared.array(256, np.float32)
        flags = cuda.shared.array(256, np.int32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        values[tid] = x[i]
        flags[tid] = heads[i]
        cuda.syncthreads()
        offset = 1
        while offset < 256:
            value = values[tid]
            flag = flags[tid]
            if tid >= offset:
                if flag == 0:
                    value += values[tid - offset]
                flag |= flags[tid - offset]
            cuda.syncthreads()
            values[tid] = value
            flags[tid] = flag
            cuda.syncthreads()
            offset *= 2
        out[i] = values[tid]

    return segmented


def segmented_work(size: str):
    n = sized(size, 1 << 21, 1024)
    heads = (random(287, n) < np.float32(0.1)).astype(np.int32)
    return given((n // 256,), (256,), (random(286, n), heads, np.empty(n, np.float32)), (2,))


def segmented_reference(xp, args):
    x, heads, _ = args
    sums = x.astype(xp.float64).cumsum()
    begins = (heads != 0) | (xp.arange(x.size) % 256 == 0)
    first = xp.maximum.accumulate(xp.where(begins, xp.arange(x.size), 0))
    return (sums - xp.concatenate([[0.0], sums])[first],)


def make_dot(cuda):
    @cuda.jit
    def dot(a, b, result):
        cache = cuda.shared.array(256, np.float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        total = ZERO
        while i < a.size:
            total += a[i] * b[i]
            i += cuda.blockDim.x * cuda.gridDim.x
        cache[tid] = total
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half != 0:
            if tid < half:
                cache[tid] += cache[tid + half]
            cuda.syncthreads()
            half //= 2
        if tid == 0:
            cuda.atomic.add(result, 0, cache[0])

    return dot


def dot_work(size: str):
    n = sized(size, 1 << 23, 9000)
    args = (random(288, n), random(289, n), np.empty(1, np.float32))
    return given((sized(size, 256, 5),), (256,), args, (2,), (n,))


def dot_reference(xp, args):
    return (xp.dot(args[0].astype(xp.float64), args[1])[None],)


CASES = (
    on_cpu("pattern in bytes, naive", make_match, match_work, match_reference, tolerance=0.0, accumulates=True),
    on_cpu("merge by ranks", make_merge, merge_work, merge_reference, tolerance=0.0),
    on_cpu("radix sort, counts of digits", make_radix, radix_work, radix_reference, tolerance=0.0),
    on_cpu("odd-even sort in a block", make_odd_even, odd_even_work, sorted_by_rows(256), tolerance=0.0),
    on_cpu("bitonic sort in a block", make_bitonic, bitonic_work, sorted_by_rows(512), tolerance=0.0),
    on_cpu("segmented scan in a block", make_segmented, segmented_work, segmented_reference),
    on_cpu("dot product", make_dot, dot_work, dot_reference, tolerance=1e-4, accumulates=True),
)
