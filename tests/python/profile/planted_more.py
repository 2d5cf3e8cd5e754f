"""Further kernels with one performance fault each, and without one: see `planted`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from planted import ROW, SQUARE, N, picture, vector
from weft import cuda


@cuda.jit
def copy_rows(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x]


@cuda.jit
def volume_backwards(a, out):
    i, j, k = cuda.grid(3)
    if i < a.shape[0] and j < a.shape[1] and k < a.shape[2]:
        out[i, j, k] = a[i, j, k] + np.float32(1)


@cuda.jit
def gray(rgb, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = rgb[i, 0]


@cuda.jit
def chunks(x, out):
    i = cuda.grid(1)
    for k in range(32):
        out[i * 32 + k] = x[i * 32 + k]


@cuda.jit
def masses(particles, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = particles[i].mass


@cuda.jit
def scatter(x, index, out):
    i = cuda.grid(1)
    if i < x.size:
        out[index[i]] = x[i]


@cuda.jit
def interleaved_sum(x, out):
    tile = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    distance = 1
    while distance < 256:
        index = 2 * distance * t
        if index < 256:
            tile[index] += tile[index + distance]
        cuda.syncthreads()
        distance *= 2
    if t == 0:
        out[cuda.blockIdx.x] = tile[0]


@cuda.jit
def pairs_of_words(x, out):
    tile = cuda.shared.array(4096, np.float32)
    t = cuda.threadIdx.x
    for k in range(16):
        tile[t * 16 + k] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[t]


@cuda.jit
def narrow_tile(a, out):
    tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(16):
        total += tile[tx, k]
    out[y, x] = total


@cuda.jit
def pi_in_a_loop(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        for _ in range(64):
            value = np.float32(value + math.pi * value)
        out[i] = value


@cuda.jit
def scalar_of_the_host(a, x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        for _ in range(64):
            value = np.float32(value * a + a)
        out[i] = value


@cuda.jit
def division_by_a_literal(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        for _ in range(32):
            value = np.float32((value + 1.5) / 3.7)
        out[i] = value


@cuda.jit
def collatz(out):
    i = cuda.grid(1)
    n = np.int32(i + 1)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    out[i] = steps


@cuda.jit
def two_ways(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i % 2 == 0:
        for _ in range(150):
            value = math.sqrt(value + np.float32(1))
    else:
        for _ in range(150):
            value = value * np.float32(0.5) + np.float32(2)
    out[i] = value


@cuda.jit
def maximum(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(out, 0, x[i])


@cuda.jit
def add_in_a_loop(a, out):
    i = cuda.grid(1)
    for k in range(16):
        cuda.atomic.add(out, i % 4, a[k, i])


@cuda.jit
def shared_doubles(x, out):
    sums = cuda.shared.array(4, np.float64)
    t = cuda.threadIdx.x
    if t < 4:
        sums[t] = 0
    cuda.syncthreads()
    for k in range(8):
        cuda.atomic.add(sums, k % 4, x[cuda.grid(1)])
    cuda.syncthreads()
    if t < 4:
        out[cuda.blockIdx.x, t] = sums[t]


@cuda.jit
def sorted_window(x, out):
    i = cuda.grid(1)
    window = cuda.local.array(48, np.float32)
    for k in range(48):
        window[k] = x[(i + k * 7) % x.size]
    at = i % 48
    total = np.float32(0)
    for _ in range(96):
        at = (at * 5 + 7) % 48
        total += window[at]
        window[at] = total
    out[i] = total


@cuda.jit
def one_thread(x, out):
    total = np.float32(0)
    for k in range(x.size):
        total += x[k]
    out[0] = total


@cuda.jit
def eight_blocks(x, out):
    for k in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[k] = x[k] * np.float32(2)


@cuda.jit
def huge_tile(x, out):
    tile = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[127 - t]


@cuda.jit
def products_by_one_warp(x, out):
    tile = cuda.shared.array(256, np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t] = x[i]
    cuda.syncthreads()
    if t < 32:
        total = np.float32(0)
        for j in range(256):
            total += tile[j] * tile[255 - j]
        tile[t] = total
    cuda.syncthreads()
    out[i] = tile[t % 32]


@cuda.jit
def sums_of_lists(x, lengths, out):
    sums = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(lengths[t // 32]):
        total += x[(cuda.blockIdx.x + k) * 32 + t % 32]
    sums[t] = total
    cuda.syncthreads()
    out[cuda.grid(1)] = sums[t] + sums[255 - t]


_random = np.random.default_rng(3)
_particles = np.zeros(65536, [("x", "3f4"), ("v", "3f4"), ("mass", "f4"), ("charge", "f4")])
_permutation = _random.permutation(65536).astype(np.int32)

FAULTS: dict[str, tuple[Any, Any, tuple[Any, ...], str, str]] = {
    "an array in Fortran's order": (
        copy_rows,
        SQUARE,
        (np.asfortranarray(picture()), picture()),
        "uncoalesced",
        "out[y, x] = a[y, x]",
    ),
    "a volume from its first axis": (
        volume_backwards,
        ((8, 8, 8), (8, 8, 8)),
        (np.zeros((64, 64, 64), np.float32), np.zeros((64, 64, 64), np.float32)),
        "uncoalesced",
        "out[i, j, k] =",
    ),
    "one color of a picture": (
        gray,
        (256, 256),
        (np.zeros((65536, 4), np.float32), np.zeros(65536, np.float32)),
        "uncoalesced",
        "out[i] = rgb[i, 0]",
    ),
    "a chunk for each thread": (
        chunks,
        (160, 64),
        (np.zeros(327680), np.zeros(327680)),
        "uncoalesced",
        "out[i * 32 + k]",
    ),
    "a field of records": (masses, (256, 256), (_particles, np.zeros(65536, np.float32)), "uncoalesced", ".mass"),
    "a random scatter": (
        scatter,
        (256, 256),
        (np.zeros(65536, np.float32), _permutation, np.zeros(65536, np.float32)),
        "uncoalesced",
        "out[index[i]] = x[i]",
    ),
    "interleaved addresses": (
        interleaved_sum,
        ROW,
        (vector(), np.zeros(ROW[0], np.float32)),
        "bank conflicts",
        "tile[index] += tile[index + distance]",
    ),
    "16 words for each thread": (pairs_of_words, ROW, (vector(), vector()), "bank conflicts", "tile[t * 16 + k] ="),
    "a tile of 16 columns": (
        narrow_tile,
        ((32, 32), (16, 16)),
        (picture(), picture()),
        "bank conflicts",
        "tile[tx, k]",
    ),
    "pi": (pi_in_a_loop, ROW, (vector(), vector()), "float64", "math.pi"),
    "a float of the host": (scalar_of_the_host, ROW, (0.5, vector(), vector()), "float64", "value * a + a"),
    "a division by a literal": (division_by_a_literal, ROW, (vector(), vector()), "float64", "/ 3.7"),
    "the Collatz problem": (collatz, ROW, (np.zeros(N * N, np.int32),), "divergence", ""),
    "two ways": (two_ways, ROW, (vector(), vector()), "divergence", "if i % 2 == 0:"),
    "one maximum": (maximum, ROW, (vector(), np.zeros(1, np.float32)), "atomics", "cuda.atomic.max("),
    "an atomic operation for each element": (
        add_in_a_loop,
        (160, 256),
        (np.zeros((16, 40960), np.float32), np.zeros(4, np.float32)),
        "atomics",
        "cuda.atomic.add(out",
    ),
    "float64 in shared memory": (
        shared_doubles,
        ROW,
        (np.zeros(N * N), np.zeros((ROW[0], 4))),
        "atomics",
        "cuda.atomic.add(sums",
    ),
    "a window in local memory": (sorted_window, ROW, (vector(), vector()), "local memory", "window["),
    "one thread": (one_thread, (1, 1), (np.zeros(2000, np.float32), np.zeros(1, np.float32)), "few blocks", ""),
    "eight blocks": (eight_blocks, (8, 1024), (vector(), vector()), "few blocks", ""),
    "products by one warp": (products_by_one_warp, ROW, (vector(), vector()), "unequal work", "cuda.syncthreads()"),
    "a long list among short ones": (
        sums_of_lists,
        (1024, 256),
        (vector(), np.array([2, 1, 3, 600, 1, 2, 2, 1], np.int32), vector()),
        "unequal work",
        "cuda.syncthreads()",
    ),
    "dynamic shared memory": (huge_tile, (1024, 128, 100 << 10), (vector(), vector()), "occupancy", ""),
}


@cuda.jit
def halves(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = np.float32(0.5) * (x[i] + x[i + out.size])


@cuda.jit
def gather_of_rows(rows, index, out):
    i = cuda.blockIdx.x
    for k in range(cuda.threadIdx.x, out.shape[1], cuda.blockDim.x):
        out[i, k] = rows[index[i], k]


@cuda.jit
def warp_sums(x, out):
    i = cuda.grid(1)
    value = x[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if i % 32 == 0:
        out[i // 32] = value


@cuda.jit
def stencil(a, out):
    x, y = cuda.grid(2)
    if 0 < y < a.shape[0] - 1 and x < a.shape[1]:
        out[y, x] = a[y - 1, x] + a[y + 1, x] - np.float32(2) * a[y, x]


@cuda.jit
def polynomial(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = np.float32(0)
        for k in range(40):
            value = value * x[i] + np.float32(k)
        out[i] = value


@cuda.jit
def double_precision(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * 0.5 + 1.0


@cuda.jit
def bytes_of_a_picture(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 255 - a[i]


@cuda.jit
def clipped(x, out, low, high):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = min(max(x[i], low), high)


@cuda.jit
def broadcast(x, weights, out):
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(weights.size):
        total += x[i] * weights[k]
    out[i] = total


@cuda.jit
def outer(x, y, out):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = x[i] * y[j]


@cuda.jit
def block_maximum(x, out):
    tile = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    best = np.float32(-math.inf)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        best = max(best, x[i])
    tile[t] = best
    cuda.syncthreads()
    width = 128
    while width:
        if t < width:
            tile[t] = max(tile[t], tile[t + width])
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.max(out, 0, tile[0])


@cuda.jit
def exponentials(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.exp(x[i])


@cuda.jit
def complex_product(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * y[i]


@cuda.jit
def few_updates(x, count):
    found = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if x[i] > 0:
            found += 1
    found = cuda.coop.block.sum(found)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(count, 0, found)


_complex = np.zeros(N * N, np.complex64)

CLEAN: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "two halves": (halves, (512, 256), (vector(), np.zeros(N * N // 2, np.float32))),
    "a gather of rows": (
        gather_of_rows,
        (256, 128),
        (picture(), _random.permutation(256).astype(np.int32), np.zeros((256, N), np.float32)),
    ),
    "sums of warps": (warp_sums, ROW, (vector(), np.zeros(N * N // 32, np.float32))),
    "a stencil": (stencil, SQUARE, (picture(), picture())),
    "a polynomial": (polynomial, ROW, (vector(), vector())),
    "double precision": (double_precision, ROW, (np.zeros(N * N), np.zeros(N * N))),
    "bytes": (bytes_of_a_picture, ROW, (vector(np.uint8), vector(np.uint8))),
    "a loop over the grid": (clipped, (264, 256), (vector(), vector(), np.float32(1), np.float32(9))),
    "weights for all threads": (broadcast, ROW, (vector(), np.ones(32, np.float32), vector())),
    "an outer product": (outer, SQUARE, (np.ones(N, np.float32), np.ones(N, np.float32), picture())),
    "a maximum of blocks": (block_maximum, (264, 256), (np.zeros(1 << 20, np.float32), np.zeros(1, np.float32))),
    "exponentials": (exponentials, ROW, (np.zeros(N * N, np.float32), vector())),
    "complex numbers": (complex_product, ROW, (_complex, _complex.copy(), _complex.copy())),
    "one update for each block": (few_updates, (264, 256), (np.ones(1 << 20, np.float32), np.zeros(1, np.int64))),
}
