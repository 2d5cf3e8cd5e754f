"""Pairs of variants of one kernel, for `ranking`: the profiler is to order them as a GPU's clock does.

They are from textbooks and common advice: coalesced and not, tiled and not, padded and not, float32 and float64, one
output a thread and several, atomics of every thread and of every block. The variants of a pair give the same result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


@dataclass(frozen=True)
class Variant:
    """A kernel and its launch."""

    make: Callable[[ModuleType], Any]
    grid: Any
    block: Any


@dataclass(frozen=True)
class Pair:
    """Two variants with the same arguments, and the relative tolerance of their results."""

    name: str
    one: Variant
    other: Variant
    args: Callable[[], tuple[Any, ...]]
    """The arguments; the last one is the output."""
    tolerance: float = 1e-5


PICTURE = 8192
ELEMENTS = 1 << 26
SQUARE = (PICTURE // 32, PICTURE // 32), (32, 32)
ROW = ELEMENTS // 256, 256


def picture(extent: int = PICTURE) -> np.ndarray:
    return np.random.default_rng(1).random((extent, extent), dtype=np.float32)


def vector(extent: int = ELEMENTS) -> np.ndarray:
    return np.random.default_rng(2).random(extent, dtype=np.float32)


def naive_transpose(cuda):
    @cuda.jit
    def transpose(a, out):
        x, y = cuda.grid(2)
        if y < a.shape[0] and x < a.shape[1]:
            out[x, y] = a[y, x]

    return transpose


def tiled_transpose(cuda, width=32):
    @cuda.jit
    def transpose(a, out):
        tile = cuda.shared.array((32, width), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x, y = cuda.grid(2)
        tile[ty, tx] = a[y, x]
        cuda.syncthreads()
        out[cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx] = tile[tx, ty]

    return transpose


def padded_transpose(cuda):
    return tiled_transpose(cuda, 33)


def brighten_rows(cuda):
    @cuda.jit
    def brighten(a, out):
        x, y = cuda.grid(2)
        if y < a.shape[0] and x < a.shape[1]:
            out[y, x] = a[y, x] * np.float32(1.5)

    return brighten


def brighten_columns(cuda):
    @cuda.jit
    def brighten(a, out):
        y, x = cuda.grid(2)
        if y < a.shape[0] and x < a.shape[1]:
            out[y, x] = a[y, x] * np.float32(1.5)

    return brighten


def naive_product(cuda):
    @cuda.jit
    def product(a, b, out):
        x, y = cuda.grid(2)
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[y, k] * b[k, x]
        out[y, x] = total

    return product


def column_product(cuda):
    @cuda.jit
    def product(a, b, out):
        y, x = cuda.grid(2)
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[y, k] * b[k, x]
        out[y, x] = total

    return product


def tiled_product(cuda):
    @cuda.jit
    def product(a, b, out):
        a_tile = cuda.shared.array((32, 32), np.float32)
        b_tile = cuda.shared.array((32, 32), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x, y = cuda.grid(2)
        total = np.float32(0)
        for k in range(0, a.shape[1], 32):
            a_tile[ty, tx] = a[y, k + tx]
            b_tile[ty, tx] = b[k + ty, x]
            cuda.syncthreads()
            for j in range(32):
                total += a_tile[ty, j] * b_tile[j, tx]
            cuda.syncthreads()
        out[y, x] = total

    return product


def four_product(cuda):
    """Four rows of the result a thread."""

    @cuda.jit
    def product(a, b, out):
        a_tile = cuda.shared.array((32, 32), np.float32)
        b_tile = cuda.shared.array((32, 32), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x = cuda.blockIdx.x * 32 + tx
        top = cuda.blockIdx.y * 32
        totals = cuda.local.array(4, np.float32)
        for r in range(4):
            totals[r] = 0
        for k in range(0, a.shape[1], 32):
            for r in range(4):
                a_tile[ty + 8 * r, tx] = a[top + ty + 8 * r, k + tx]
                b_tile[ty + 8 * r, tx] = b[k + ty + 8 * r, x]
            cuda.syncthreads()
            for j in range(32):
                right = b_tile[j, tx]
                for r in range(4):
                    totals[r] += a_tile[ty + 8 * r, j] * right
            cuda.syncthreads()
        for r in range(4):
            out[top + ty + 8 * r, x] = totals[r]

    return product


def sum_of_threads(cuda):
    @cuda.jit
    def total(x, out):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(out, i & 1023, x[i])

    return total


def sum_of_blocks(cuda):
    @cuda.jit
    def total(x, out):
        tile = cuda.shared.array(256, np.float32)
        t = cuda.threadIdx.x
        part = np.float32(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            part += x[i]
        tile[t] = part
        cuda.syncthreads()
        width = 128
        while width:
            if t < width:
                tile[t] += tile[t + width]
            cuda.syncthreads()
            width //= 2
        if t == 0:
            cuda.atomic.add(out, cuda.blockIdx.x & 1023, tile[0])

    return total


def global_histogram(cuda):
    @cuda.jit
    def histogram(x, out):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            cuda.atomic.add(out, x[i], 1)

    return histogram


def shared_histogram(cuda):
    @cuda.jit
    def histogram(x, out):
        bins = cuda.shared.array(256, np.int32)
        t = cuda.threadIdx.x
        bins[t] = 0
        cuda.syncthreads()
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            cuda.atomic.add(bins, x[i], 1)
        cuda.syncthreads()
        cuda.atomic.add(out, t, bins[t])

    return histogram


def rows_by_thread(cuda):
    @cuda.jit
    def sums(a, out):
        i = cuda.grid(1)
        if i < a.shape[0]:
            total = np.float32(0)
            for j in range(a.shape[1]):
                total += a[i, j]
            out[i] = total

    return sums


def rows_by_warp(cuda):
    @cuda.jit
    def sums(a, out):
        i = cuda.grid(1) // 32
        lane = cuda.laneid
        total = np.float32(0)
        for j in range(lane, a.shape[1], 32):
            total += a[i, j]
        offset = 16
        while offset:
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
            offset //= 2
        if lane == 0:
            out[i] = total

    return sums


def points_by_rows(cuda):
    @cuda.jit
    def norms(points, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = points[i * 8] * points[i * 8 + 1] + points[i * 8 + 5]

    return norms


def points_by_columns(cuda):
    @cuda.jit
    def norms(points, out):
        i = cuda.grid(1)
        n = out.size
        if i < n:
            out[i] = points[i] * points[n + i] + points[5 * n + i]

    return norms


def polynomial(cuda, one, half):
    @cuda.jit
    def evaluate(x, out):
        i = cuda.grid(1)
        if i < x.size:
            value = x[i]
            for _ in range(64):
                value = np.float32(value * half + one)
            out[i] = value

    return evaluate


def in_float32(cuda):
    return polynomial(cuda, np.float32(0.25), np.float32(0.5))


def in_float64(cuda):
    return polynomial(cuda, np.float64(0.25), np.float64(0.5))


def interleaved(cuda):
    @cuda.jit
    def sums(x, out):
        tile = cuda.shared.array(256, np.float32)
        t = cuda.threadIdx.x
        tile[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        step = 1
        while step < 256:
            if t % (2 * step) == 0:
                tile[t] += tile[t + step]
            cuda.syncthreads()
            step *= 2
        if t == 0:
            out[cuda.blockIdx.x] = tile[0]

    return sums


def sequential(cuda):
    @cuda.jit
    def sums(x, out):
        tile = cuda.shared.array(256, np.float32)
        t = cuda.threadIdx.x
        tile[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        step = 128
        while step:
            if t < step:
                tile[t] += tile[t + step]
            cuda.syncthreads()
            step //= 2
        if t == 0:
            out[cuda.blockIdx.x] = tile[0]

    return sums


def by_shuffles(cuda):
    @cuda.jit
    def sums(x, out):
        parts = cuda.shared.array(8, np.float32)
        t = cuda.threadIdx.x
        value = x[cuda.grid(1)]
        offset = 16
        while offset:
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
            offset //= 2
        if t % 32 == 0:
            parts[t // 32] = value
        cuda.syncthreads()
        if t == 0:
            total = np.float32(0)
            for k in range(8):
                total += parts[k]
            out[cuda.blockIdx.x] = total

    return sums


def by_lane(cuda):
    @cuda.jit
    def work(x, out):
        i = cuda.grid(1)
        value = x[i]
        if i & 1:
            for _ in range(200):
                value = math.sqrt(value + np.float32(0.25))
        else:
            for _ in range(200):
                value = math.sqrt(value + np.float32(0.5))
        out[i] = value

    return work


def by_half(cuda):
    """The same as `by_lane`: the even elements are the first half's."""

    @cuda.jit
    def work(x, out):
        t = cuda.grid(1)
        half = x.size // 2
        if t < half:
            i = 2 * t
            value = x[i]
            for _ in range(200):
                value = math.sqrt(value + np.float32(0.5))
        else:
            i = 2 * (t - half) + 1
            value = x[i]
            for _ in range(200):
                value = math.sqrt(value + np.float32(0.25))
        out[i] = value

    return work


def rows_of_a_matrix_by_thread(cuda):
    @cuda.jit
    def product(starts, columns, values, x, out):
        i = cuda.grid(1)
        if i < out.size:
            total = np.float32(0)
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * x[columns[k]]
            out[i] = total

    return product


def rows_of_a_matrix_by_warp(cuda):
    @cuda.jit
    def product(starts, columns, values, x, out):
        i = cuda.grid(1) // 32
        lane = cuda.laneid
        total = np.float32(0)
        for k in range(starts[i] + lane, starts[i + 1], 32):
            total += values[k] * x[columns[k]]
        offset = 16
        while offset:
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
            offset //= 2
        if lane == 0:
            out[i] = total

    return product


def sparse():
    rows, per_row = 1 << 18, 96
    rng = np.random.default_rng(3)
    starts = np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)
    columns = rng.integers(0, 1 << 16, rows * per_row, dtype=np.int32)
    return starts, columns, vector(rows * per_row), vector(1 << 16), np.zeros(rows, np.float32)


def scale(cuda):
    @cuda.jit
    def double(x, out):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            out[i] = x[i] * np.float32(2)

    return double


def gather(cuda):
    @cuda.jit
    def permute(x, index, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[index[i]]

    return permute


def in_order(cuda):
    @cuda.jit
    def permute(x, index, out):
        i = cuda.grid(1)
        if i < x.size and index[i] >= 0:
            out[i] = x[i]

    return permute


def window_of_loads(cuda):
    @cuda.jit
    def blur(a, out):
        x, y = cuda.grid(2)
        if y < a.shape[0] - 8 and x < a.shape[1] - 8:
            total = np.float32(0)
            for j in range(9):
                for i in range(9):
                    total += a[y + j, x + i]
            out[y, x] = total

    return blur


def window_of_columns(cuda):
    """Sums of columns first, in shared memory."""

    @cuda.jit
    def blur(a, out):
        tile = cuda.shared.array((32, 40), np.float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        if y < a.shape[0] - 8:
            for c in range(tx, 40, 32):
                if x - tx + c < a.shape[1]:
                    column = np.float32(0)
                    for j in range(9):
                        column += a[y + j, x - tx + c]
                    tile[ty, c] = column
        cuda.syncthreads()
        if y < a.shape[0] - 8 and x < a.shape[1] - 8:
            total = np.float32(0)
            for i in range(9):
                total += tile[ty, tx + i]
            out[y, x] = total

    return blur


def counter_of_threads(cuda):
    @cuda.jit
    def count(x, out):
        i = cuda.grid(1)
        if i < x.size and x[i] > np.float32(0.5):
            cuda.atomic.add(out, 0, np.float32(1))

    return count


def counter_of_warps(cuda):
    @cuda.jit
    def count(x, out):
        i = cuda.grid(1)
        found = i < x.size and x[i] > np.float32(0.5)
        votes = cuda.ballot_sync(0xFFFFFFFF, found)
        if cuda.laneid == 0:
            cuda.atomic.add(out, 0, np.float32(cuda.popc(votes)))

    return count


def structures_in_tile(cuda, width):
    @cuda.jit
    def turn(x, out):
        tile = cuda.shared.array(256 * width, np.float32)
        t = cuda.threadIdx.x
        for k in range(8):
            tile[t * width + k] = x[cuda.grid(1)] * k
        total = np.float32(0)
        for _ in range(16):
            for k in range(8):
                total += tile[t * width + k]
            cuda.syncthreads()
        out[cuda.grid(1)] = total

    return turn


def width_of_8(cuda):
    return structures_in_tile(cuda, 8)


def width_of_9(cuda):
    return structures_in_tile(cuda, 9)


def table_in_local_memory(cuda):
    @cuda.jit
    def pick(x, index, out):
        i = cuda.grid(1)
        table = cuda.local.array(32, np.float32)
        for k in range(32):
            table[k] = x[i] * k
        total = np.float32(0)
        for k in range(8):
            total += table[(index[i] + k * 5) & 31]
        out[i] = total

    return pick


def values_without_table(cuda):
    @cuda.jit
    def pick(x, index, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(8):
            total += x[i] * np.float32((index[i] + k * 5) & 31)
        out[i] = total

    return pick


def index_of_small(extent: int = ELEMENTS) -> np.ndarray:
    return np.random.default_rng(4).integers(0, 32, extent, dtype=np.int32)


def permutation(extent: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(extent).astype(np.int32)


def squares() -> tuple[Any, ...]:
    return picture(), np.zeros((PICTURE, PICTURE), np.float32)


def factors() -> tuple[Any, ...]:
    return picture(2048), picture(2048), np.zeros((2048, 2048), np.float32)


def of_elements(out: int = ELEMENTS) -> tuple[Any, ...]:
    return vector(), np.zeros(out, np.float32)


OF_PRODUCT = (64, 64), (32, 32)
PER_SM = 132 * 8, 256
PAIRS = [
    Pair("transpose: direct, tiled", Variant(naive_transpose, *SQUARE), Variant(padded_transpose, *SQUARE), squares),
    Pair("transpose: tile of 32, padded", Variant(tiled_transpose, *SQUARE), Variant(padded_transpose, *SQUARE),
         squares),
    Pair("picture: along columns, along rows", Variant(brighten_columns, *SQUARE), Variant(brighten_rows, *SQUARE),
         squares),
    Pair("product: threads along columns, along rows", Variant(column_product, *OF_PRODUCT),
         Variant(naive_product, *OF_PRODUCT), factors, 1e-3),
    Pair("product: direct, tiles", Variant(naive_product, *OF_PRODUCT), Variant(tiled_product, *OF_PRODUCT), factors,
         1e-3),
    Pair("product: one result a thread, four", Variant(tiled_product, *OF_PRODUCT),
         Variant(four_product, (64, 64), (32, 8)), factors, 1e-3),
    Pair("sum: atomics of threads, of blocks", Variant(sum_of_threads, *ROW), Variant(sum_of_blocks, *PER_SM),
         lambda: of_elements(1024), float("inf")),
    Pair("histogram: global, shared", Variant(global_histogram, *PER_SM), Variant(shared_histogram, *PER_SM),
         lambda: (np.random.default_rng(6).integers(0, 256, ELEMENTS, dtype=np.uint8), np.zeros(256, np.int32))),
    Pair("sums of rows: a thread a row, a warp a row", Variant(rows_by_thread, 256, 256),
         Variant(rows_by_warp, 1 << 13, 256),
         lambda: (vector().reshape(1 << 16, 1 << 10), np.zeros(1 << 16, np.float32)), 1e-3),
    Pair("points: structures, columns", Variant(points_by_rows, 1 << 15, 256), Variant(points_by_columns, 1 << 15, 256),
         lambda: of_elements(ELEMENTS // 8), float("inf")),
    Pair("polynomial: float64, float32", Variant(in_float64, *ROW), Variant(in_float32, *ROW), of_elements),
    Pair("sums of blocks: interleaved, sequential", Variant(interleaved, *ROW), Variant(sequential, *ROW),
         lambda: of_elements(ROW[0]), 1e-3),
    Pair("sums of blocks: sequential, shuffles", Variant(sequential, *ROW), Variant(by_shuffles, *ROW),
         lambda: of_elements(ROW[0]), 1e-3),
    Pair("two roles: by lane, by half", Variant(by_lane, *ROW), Variant(by_half, *ROW), of_elements),
    Pair("sparse product: a thread a row, a warp a row", Variant(rows_of_a_matrix_by_thread, 1 << 10, 256),
         Variant(rows_of_a_matrix_by_warp, 1 << 15, 256), sparse, 1e-3),
    Pair("scaling: 16 blocks, 1,056 blocks", Variant(scale, 16, 256), Variant(scale, *PER_SM), of_elements),
    Pair("gather: random, in order", Variant(gather, 1 << 17, 256), Variant(in_order, 1 << 17, 256),
         lambda: (vector(1 << 25), permutation(1 << 25), np.zeros(1 << 25, np.float32)), float("inf")),
    Pair("window of 9 by 9: 81 loads, sums of columns", Variant(window_of_loads, *SQUARE),
         Variant(window_of_columns, *SQUARE), squares, 1e-4),
    Pair("counter: of threads, of warps", Variant(counter_of_threads, 1 << 15, 256),
         Variant(counter_of_warps, 1 << 15, 256), lambda: (vector(1 << 23), np.zeros(1, np.float32))),
    Pair("structures in shared memory: 8 words, padded to 9", Variant(width_of_8, *ROW), Variant(width_of_9, *ROW),
         of_elements),
    Pair("values: a table in local memory, computed", Variant(table_in_local_memory, *ROW),
         Variant(values_without_table, *ROW), lambda: (vector(), index_of_small(), np.zeros(ELEMENTS, np.float32))),
]  # fmt: skip
"""The first of each is the one that advice calls worse; `ranking` does not use that."""
