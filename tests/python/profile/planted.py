"""Kernels with one performance fault each, and kernels without one, for tests of the profiler's findings.

Each builder gives a kernel, its launch configuration and its arguments. `FAULTS` has the kind of the finding that must
be the first one, and the text of its line.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from weft import cuda

N = 512
"""The extent of pictures: 256 blocks of 32 by 32 threads, or 1,024 blocks of 256 threads."""

SQUARE = (N // 32, N // 32), (32, 32)
ROW = N * N // 256, 256


def picture(dtype: type = np.float32) -> np.ndarray:
    return np.arange(N * N, dtype=dtype).reshape(N, N)


def vector(dtype: type = np.float32) -> np.ndarray:
    return np.arange(N * N, dtype=dtype)


@cuda.jit
def exchanged(a, out):
    y, x = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x]


@cuda.jit
def naive_transpose(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[x, y] = a[y, x]


@cuda.jit
def row_sums(a, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = np.float32(0)
        for j in range(a.shape[1]):
            total += a[i, j]
        out[i] = total


@cuda.jit
def strided(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * 16]


@cuda.jit
def structures(points, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = points[i, 0]


@cuda.jit
def random_gather(x, index, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[index[i]]


@cuda.jit
def shifted(x, out):
    i = cuda.grid(1)
    if i < out.size:
        value = x[i + 1]
        value += x[i + 3]
        value += x[i + 5]
        value += x[i + 7]
        out[i] = value


@cuda.jit
def tile_column(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx] = tile[tx, ty]


@cuda.jit
def tile_stride(x, out):
    tile = cuda.shared.array(2048, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(64):
        total += tile[(t * 8 + k) % 2048]
    out[cuda.grid(1)] = total


@cuda.jit
def tile_doubles(x, out):
    tile = cuda.shared.array((32, 32), np.float64)
    t = cuda.threadIdx.x
    for k in range(32):
        tile[t % 32, k] = x[t]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[0, t % 32]


@cuda.jit
def one_counter(x, count):
    i = cuda.grid(1)
    if i < x.size and x[i] > 0:
        cuda.atomic.add(count, 0, np.float32(1))


@cuda.jit
def few_bins(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i] % 8, 1)


@cuda.jit
def block_sum(x, out):
    total = cuda.shared.array(1, np.float32)
    if cuda.threadIdx.x == 0:
        total[0] = 0
    cuda.syncthreads()
    for k in range(8):
        cuda.atomic.add(total, 0, x[cuda.grid(1)] + np.float32(k))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = total[0]


@cuda.jit
def odd_lanes(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i % 8 == 0:
        for _ in range(200):
            value = value * np.float32(0.5) + np.float32(1)
    out[i] = value


@cuda.jit
def own_trip_count(x, out):
    i = cuda.grid(1)
    value = x[i]
    k = 0
    while k < (i * 7919) % 301:
        value = math.sqrt(value + np.float32(1))
        k += 1
    out[i] = value


@cuda.jit
def double_literal(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        for _ in range(100):
            value = np.float32(value * 0.75 + 0.1)
        out[i] = value


@cuda.jit
def local_table(x, out):
    i = cuda.grid(1)
    table = cuda.local.array(64, np.float32)
    for k in range(64):
        table[k] = x[i] + k
    total = np.float32(0)
    for k in range(64):
        total += table[(i * 31 + k * k) % 64]
    out[i] = total


@cuda.jit
def one_block(x, out):
    t = cuda.threadIdx.x
    for k in range(t, x.size, cuda.blockDim.x):
        out[k] = x[k] + np.float32(1)


@cuda.jit
def large_tile(x, out):
    tile = cuda.shared.array(10240, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[63 - t]


FAULTS: dict[str, tuple[Any, Any, tuple[Any, ...], str, str]] = {
    "exchanged axes": (exchanged, SQUARE, (picture(), picture()), "uncoalesced", "out[y, x] = a[y, x]"),
    "naive transpose": (naive_transpose, SQUARE, (picture(), picture()), "uncoalesced", "out[x, y] = a[y, x]"),
    "a row for each thread": (
        row_sums,
        (160, 32),
        (np.ones((5120, 64), np.float32), np.zeros(5120, np.float32)),
        "uncoalesced",
        "total += a[i, j]",
    ),
    "every 16th element": (
        strided,
        (256, 256),
        (np.zeros(16 * 65536, np.float32), np.zeros(65536, np.float32)),
        "uncoalesced",
        "out[i] = x[i * 16]",
    ),
    "an array of structures": (
        structures,
        (256, 256),
        (np.zeros((65536, 8), np.float32), np.zeros(65536, np.float32)),
        "uncoalesced",
        "out[i] = points[i, 0]",
    ),
    "a random gather": (
        random_gather,
        (256, 256),
        (
            np.zeros(65536, np.float32),
            np.random.default_rng(1).permutation(65536).astype(np.int32),
            np.zeros(65536, np.float32),
        ),
        "uncoalesced",
        "out[i] = x[index[i]]",
    ),
    "a shifted row": (
        shifted,
        (256, 256),
        (np.zeros(65544, np.float32), np.zeros(65536, np.float32)),
        "misaligned",
        "value = x[i + 1]",
    ),
    "a column of a tile": (tile_column, SQUARE, (picture(), picture()), "bank conflicts", "tile[tx, ty]"),
    "a stride of 8 words": (tile_stride, ROW, (vector(), vector()), "bank conflicts", "total += tile["),
    "a column of doubles": (
        tile_doubles,
        ROW,
        (np.zeros(256), np.zeros(N * N)),
        "bank conflicts",
        "tile[t % 32, k] = x[t]",
    ),
    "one counter": (one_counter, ROW, (vector(), np.zeros(1, np.float32)), "atomics", "cuda.atomic.add(count"),
    "few bins": (few_bins, ROW, (vector(np.int32), np.zeros(8, np.int32)), "atomics", "cuda.atomic.add(bins"),
    "a sum in shared memory": (
        block_sum,
        ROW,
        (vector(), np.zeros(ROW[0], np.float32)),
        "atomics",
        "cuda.atomic.add(total",
    ),
    "every 8th lane": (odd_lanes, ROW, (vector(), vector()), "divergence", "i % 8 == 0"),
    "trip counts of threads": (own_trip_count, ROW, (vector(), vector()), "divergence", "while k <"),
    "a float64 literal": (double_literal, ROW, (vector(), vector()), "float64", "value * 0.75 + 0.1"),
    "a table in local memory": (local_table, ROW, (vector(), vector()), "local memory", "total += table["),
    "one block": (one_block, (1, 256), (vector(), vector()), "few blocks", ""),
    "a large tile": (large_tile, (1024, 64), (vector(), vector()), "occupancy", ""),
}


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx] = tile[tx, ty]


@cuda.jit
def block_sums(x, out):
    tile = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    tile[t] = total
    cuda.syncthreads()
    width = 128
    while width:
        if t < width:
            tile[t] += tile[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = tile[0]


@cuda.jit
def product(a, b, c):
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = np.float32(0)
    for k in range(0, a.shape[1], 16):
        a_tile[ty, tx] = a[y, k + tx]
        b_tile[ty, tx] = b[k + ty, x]
        cuda.syncthreads()
        for j in range(16):
            total += a_tile[ty, j] * b_tile[j, tx]
        cuda.syncthreads()
    c[y, x] = total


@cuda.jit
def columns(points, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = points[0, i] * points[1, i] + points[2, i]


CLEAN: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "saxpy": (saxpy, ROW, (np.float32(2), vector(), vector())),
    "a padded transpose": (transpose, SQUARE, (picture(), picture())),
    "sums of blocks": (block_sums, (264, 256), (np.zeros(1 << 20, np.float32), np.zeros(264, np.float32))),
    "a tiled product": (
        product,
        ((16, 16), (16, 16)),
        (np.ones((256, 64), np.float32), np.ones((64, 256), np.float32), np.zeros((256, 256), np.float32)),
    ),
    "an array of columns": (columns, ROW, (np.zeros((3, N * N), np.float32), np.zeros(N * N, np.float32))),
}
