"""Graphs, trees and tables: BFS with masks, ELL and COO by vector, a B+ tree, Needleman-Wunsch in tiles."""

from __future__ import annotations

import numpy as np
from suite.case import blocks, random, sized

from third.forms import Host, given, on_cpu

ZERO = np.float32(0)


def make_bfs(cuda):
    @cuda.jit
    def expand(starts, edges, mask, updating, visited, cost):
        tid = cuda.grid(1)
        if tid < mask.size and mask[tid]:
            mask[tid] = False
            for i in range(starts[tid], starts[tid + 1]):
                other = edges[i]
                if not visited[other]:
                    cost[other] = cost[tid] + 1
                    updating[other] = True

    @cuda.jit
    def settle(mask, updating, visited, over):
        tid = cuda.grid(1)
        if tid < mask.size and updating[tid]:
            mask[tid] = True
            visited[tid] = True
            over[0] = True
            updating[tid] = False

    def bfs(grid, block, starts, edges, mask, updating, visited, over, cost):
        again = np.ones(1, np.bool_)
        while again[0]:
            again[0] = False
            over.copy_to_device(again)
            expand[grid, block](starts, edges, mask, updating, visited, cost)
            settle[grid, block](mask, updating, visited, over)
            over.copy_to_host(again)

    return Host(bfs)


def bfs_work(size: str):
    n = sized(size, 1 << 18, 700)
    numbers = np.random.default_rng(270)
    starts = np.zeros(n + 1, np.int32)
    np.cumsum(numbers.integers(2, 9, n), out=starts[1:])
    edges = numbers.integers(0, n, int(starts[-1]), dtype=np.int32)
    masks = np.zeros((3, n), np.bool_)
    masks[0, 0] = masks[2, 0] = True
    cost = np.full(n, -1, np.int32)
    cost[0] = 0
    args = (starts, edges, *masks, np.zeros(1, np.bool_), cost)
    return given((blocks(n, 512),), (512,), args, (6,), (n,), in_place=(2, 3, 4, 5, 6))


def bfs_reference(xp, args):
    starts, edges, cost = args[0], args[1], args[6].copy()
    owner = xp.repeat(xp.arange(cost.size), xp.diff(starts))
    level = 0
    while True:
        reached = edges[cost[owner] == level]
        reached = reached[cost[reached] < 0]
        if not reached.size:
            return (cost,)
        level += 1
        cost[reached] = level


def make_ell(cuda):
    @cuda.jit
    def spmv_ell(values, columns, x, y):
        row = cuda.grid(1)
        if row < y.size:
            total = ZERO
            for k in range(values.shape[0]):
                column = columns[k, row]
                if column >= 0:
                    total += values[k, row] * x[column]
            y[row] = total

    return spmv_ell


def ell_work(size: str):
    n, longest = sized(size, (1 << 18, 16), (700, 9))
    numbers = np.random.default_rng(271)
    columns = numbers.integers(0, n, (longest, n), dtype=np.int32)
    columns[numbers.integers(1, longest + 1, n) <= np.arange(longest)[:, None]] = -1
    args = (random(272, longest, n), columns, random(273, n), np.empty(n, np.float32))
    return given((blocks(n, 256),), (256,), args, (3,), (longest, n))


def ell_reference(xp, args):
    values, columns, x, _ = args
    return ((xp.where(columns >= 0, values, 0).astype(xp.float64) * x[columns]).sum(axis=0),)


def make_coo(cuda):
    @cuda.jit
    def spmv_coo(rows, columns, values, x, y):
        i = cuda.grid(1)
        if i < values.size:
            cuda.atomic.add(y, rows[i], values[i] * x[columns[i]])

    return spmv_coo


def coo_work(size: str):
    n, count = sized(size, (1 << 16, 1 << 20), (300, 2000))
    numbers = np.random.default_rng(274)
    rows = np.sort(numbers.integers(0, n, count, dtype=np.int32))
    args = (rows, numbers.integers(0, n, count, dtype=np.int32), random(275, count), random(276, n),
            np.empty(n, np.float32))  # fmt: skip
    return given((blocks(count, 256),), (256,), args, (4,), (count,))


def coo_reference(xp, args):
    rows, columns, values, x, y = args
    return (xp.bincount(rows, weights=values.astype(xp.float64) * x[columns], minlength=y.size),)


FAN_OUT = 128


def make_tree(cuda):
    @cuda.jit
    def find(keys, children, height, wanted, found):
        query = cuda.blockIdx.x
        tid = cuda.threadIdx.x
        node = cuda.shared.array(1, np.int32)
        if tid == 0:
            node[0] = 0
        cuda.syncthreads()
        for _ in range(height):
            here = node[0]
            cuda.syncthreads()
            if keys[here, tid] <= wanted[query] and wanted[query] < keys[here, tid + 1]:
                node[0] = children[here, tid]
            cuda.syncthreads()
        if keys[node[0], tid] == wanted[query]:
            found[query] = children[node[0], tid]

    return find


def tree_work(size: str):
    queries, height = sized(size, (1 << 14, 2), (60, 1))
    leaves = FAN_OUT**height
    values = np.sort(np.random.default_rng(277).choice(1 << 26, leaves * FAN_OUT, replace=False)).astype(np.int32) + 1
    values[0] = 0
    keys, children, first = [], [], 0
    for level in range(height + 1):
        count = FAN_OUT**level
        step = values.size // (count * FAN_OUT)
        each = values[::step].reshape(count, FAN_OUT)
        behind = np.append(each[1:, 0], np.iinfo(np.int32).max)[:, None]
        keys.append(np.hstack([each, behind]))
        below = first + count if level < height else 0
        children.append(np.arange(count * FAN_OUT, dtype=np.int32).reshape(count, FAN_OUT) + below)
        first += count
    wanted = np.random.default_rng(278).choice(values, queries)
    args = (np.vstack(keys).astype(np.int32), np.vstack(children).astype(np.int32), np.int32(height), wanted,
            np.empty(queries, np.int32))  # fmt: skip
    return given((queries,), (FAN_OUT,), args, (4,), (queries,))


def tree_reference(xp, args):
    keys, _, height, wanted, _ = args
    leaves = keys[-(FAN_OUT ** int(height)) :, :-1].ravel()
    return (xp.searchsorted(leaves, wanted),)


def make_needle(cuda):
    @cuda.jit(device=True)
    def tile_of(similar, items, penalty, bx, by):
        tid = cuda.threadIdx.x
        temp = cuda.shared.array((17, 17), np.int32)
        ref = cuda.shared.array((16, 16), np.int32)
        row = by * 16
        column = bx * 16
        if tid == 0:
            temp[0, 0] = items[row, column]
        for ty in range(16):
            ref[ty, tid] = similar[row + ty + 1, column + tid + 1]
        cuda.syncthreads()
        temp[tid + 1, 0] = items[row + tid + 1, column]
        cuda.syncthreads()
        temp[0, tid + 1] = items[row, column + tid + 1]
        cuda.syncthreads()
        for m in range(16):
            if tid <= m:
                x = tid + 1
                y = m - tid + 1
                temp[y, x] = max(
                    temp[y - 1, x - 1] + ref[y - 1, x - 1], max(temp[y, x - 1] - penalty, temp[y - 1, x] - penalty)
                )
            cuda.syncthreads()
        for m in range(14, -1, -1):
            if tid <= m:
                x = tid + 16 - m
                y = 16 - tid
                temp[y, x] = max(
                    temp[y - 1, x - 1] + ref[y - 1, x - 1], max(temp[y, x - 1] - penalty, temp[y - 1, x] - penalty)
                )
            cuda.syncthreads()
        for ty in range(16):
            items[row + ty + 1, column + tid + 1] = temp[ty + 1, tid + 1]

    @cuda.jit
    def upper(similar, items, penalty, i):
        tile_of(similar, items, penalty, cuda.blockIdx.x, i - 1 - cuda.blockIdx.x)

    @cuda.jit
    def lower(similar, items, penalty, i, width):
        tile_of(similar, items, penalty, cuda.blockIdx.x + width - i, width - cuda.blockIdx.x - 1)

    def needle(grid, block, similar, items, penalty):
        width = grid[0]
        for i in range(1, width + 1):
            upper[i, block](similar, items, penalty, i)
        for i in range(width - 1, 0, -1):
            lower[i, block](similar, items, penalty, i, width)

    return Host(needle)


def needle_work(size: str):
    n = sized(size, 2048, 64)
    penalty = 10
    similar = np.random.default_rng(279).integers(-4, 12, (n + 1, n + 1), dtype=np.int32)
    items = np.zeros((n + 1, n + 1), np.int32)
    items[0] = items[:, 0] = -penalty * np.arange(n + 1)
    return given((n // 16,), (16,), (similar, items, np.int32(penalty)), (1,), (n,), in_place=(1,))


def needle_reference(xp, args):
    similar, items, penalty = args[0].astype(xp.int64), args[1].astype(xp.int64), int(args[2])
    n = items.shape[0] - 1
    for total in range(2, 2 * n + 1):
        i = xp.arange(max(1, total - n), min(n, total - 1) + 1)
        j = total - i
        best = xp.maximum(items[i - 1, j], items[i, j - 1]) - penalty
        items[i, j] = xp.maximum(items[i - 1, j - 1] + similar[i, j], best)
    return (items,)


CASES = (
    on_cpu("BFS with masks, all levels", make_bfs, bfs_work, bfs_reference, tolerance=0.0),
    on_cpu("ELL by vector", make_ell, ell_work, ell_reference),
    on_cpu("COO by vector, atomics", make_coo, coo_work, coo_reference, accumulates=True),
    on_cpu("B+ tree, a block a query", make_tree, tree_work, tree_reference, tolerance=0.0),
    on_cpu("Needleman-Wunsch, tiles of 16x16", make_needle, needle_work, needle_reference, tolerance=0.0, wider=True),
)
