"""The kernels of reductions along one axis (`_rows.py`), each made for the function that it calls.

On a GPU a thread has several reads under way before it needs the first, at distances that are known when the kernel is
compiled, so that they need one address: without that, half of an H200's bandwidth is not used. A row, or a column, may
be taken in parts, whose values a second launch makes one; nothing in a kernel divides by a number that it is given but
what the indices of outer axes need.
"""

from __future__ import annotations

import numpy as np

from weft import cuda
from weft.cuda._jit import jit
from weft.cuda._reduce import piece_by_piece
from weft.cuda._ufunc.kernels import outer_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import Dispatcher

WARP = 32
# Loads in flight per thread in reductions along columns. Along rows there are 4 or 8 (`along`).
DOWN_DEEP = 4
# The most threads of a block along a column; the most columns that a CPU thread reduces at a time.
DOWN = 16
ABREAST = 1024
# The most threads of a block along rows.
THREADS = 256
# The same for a CPU thread that emulates a GPU block.
LINE = 128


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def part(number: Any, parts: Any, share: Any, more: Any, unit: Any, size: Any) -> Any:
    """Give where a part begins and ends: each has `share` units, the first `more` one more, and the last the rest."""
    first = (np.uint64(number) * share + min(np.uint64(number), more)) * unit
    if np.uint64(number) + np.uint64(1) == np.uint64(parts):
        return first, np.uint64(size)
    return first, first + (share + np.uint64(np.uint64(number) < more)) * unit


def along(core: Dispatcher, dtype: Any, lanes: int, deep: int) -> Dispatcher:
    """Make the kernel for GPUs that reduces rows whose elements are neighbors.

    `lanes` threads side by side have a row, or whole warps if they are 32; a block has several rows, which lie along y,
    or one. No part of a row has fewer elements than threads. A thread has `deep` reads under way at once, 4 or 8.
    """

    @jit(device=True, inline=True)
    def several(row, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # Issue all loads before the first use.
        a, b = row[at], row[at + np.uint64(lanes)]
        c, d = row[at + np.uint64(2 * lanes)], row[at + np.uint64(3 * lanes)]
        if deep == 4:
            return core(core(a, b), core(c, d))
        e, f = row[at + np.uint64(4 * lanes)], row[at + np.uint64(5 * lanes)]
        g, h = row[at + np.uint64(6 * lanes)], row[at + np.uint64(7 * lanes)]
        return core(core(core(a, b), core(c, d)), core(core(e, f), core(g, h)))

    @jit(device=True, inline=True)
    def together(value, lane, width):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # The first of `width` lanes gets the reduced value.
        for half in (16, 8, 4, 2, 1):
            if half < width:
                other = cuda.shfl_down_sync(0xFFFFFFFF, value, half)
                if lane < half:
                    value = core(value, other)
        return value

    def reduce_rows(count, share, more, steps, extents, array, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        x, number = cuda.threadIdx.x, cuda.blockIdx.y
        width = cuda.blockDim.x if lanes == WARP else lanes
        own = type(count)(type(count)(cuda.blockIdx.x) * type(count)(cuda.blockDim.y) + type(count)(cuda.threadIdx.y))
        # Threads past the last row process it again, since all threads of a warp must reach the barriers.
        index = outer_index(min(own, type(count)(count - type(count)(1))), steps, extents)
        row = array[index]
        first, end = part(number, cuda.gridDim.y, share, more, np.uint64(WARP), row.size)
        tile = np.uint64(deep * width)
        at = first + np.uint64(x // lanes * deep * lanes + x % lanes)
        if first + tile <= end:
            value = several(row, at)
            first += tile
            while first + tile <= end:
                at += tile
                first += tile
                value = core(value, several(row, at))
            at = first + np.uint64(x)
        else:
            value = row[first + np.uint64(x)]
            at = first + np.uint64(x + width)
            first += np.uint64(width)
        if deep > 4 and first + np.uint64(4 * width) <= end:
            a, b = row[at], row[at + np.uint64(width)]
            c, d = row[at + np.uint64(2 * width)], row[at + np.uint64(3 * width)]
            value = core(value, core(core(a, b), core(c, d)))
            at += np.uint64(4 * width)
        while at < end:
            value = core(value, row[at])
            at += np.uint64(width)
        value = together(value, x % lanes, lanes)
        warps = width // WARP
        if warps > 1:
            shared = cuda.shared.array(WARP, dtype)
            if x % WARP == 0:
                shared[x // WARP] = value
            cuda.syncthreads()
            if x < WARP:
                value = together(shared[min(x, warps - 1)], x, warps)
        if x == 0 and own < count:
            out[index][number] = value

    made: Dispatcher = jit(reduce_rows)
    return made


def along_by_one(core: Dispatcher, dtype: Any, deep: int) -> Dispatcher:
    """Make the kernel for the CPU that takes the steps of `along` in their order.

    One thread has a part of a row, and does the work of `warps` of `across` lanes.
    """

    @jit(device=True, inline=True)
    def several(row, at, across):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # Slices, whose indices start at 0, so that loops over them are vectorized.
        return row[at:], row[at + across :], row[at + 2 * across :], row[at + 3 * across :]

    @jit(device=True, inline=True)
    def fold(kept, row, at, across, begins):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        a, b, c, d = several(row, at, across)
        if deep == 4:
            for x in range(across):
                value = core(core(a[x], b[x]), core(c[x], d[x]))
                kept[x] = value if begins else core(kept[x], value)
        else:
            e, f, g, h = several(row, at + 4 * across, across)
            for x in range(across):
                left = core(core(a[x], b[x]), core(c[x], d[x]))
                value = core(left, core(core(e[x], f[x]), core(g[x], h[x])))
                kept[x] = value if begins else core(kept[x], value)

    @jit(device=True, inline=True)
    def together(kept, width):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        half = width // 2
        while half > 0:
            for lane in range(half):
                kept[lane] = core(kept[lane], kept[lane + half])
            half //= 2

    def reduce_rows(pieces, share, more, steps, extents, array, out, warps, across):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        kept = cuda.local.array(THREADS, dtype)
        block = type(pieces)(cuda.blockIdx.x)
        index, number = outer_index(block // pieces, steps, extents), np.int64(block % pieces)
        row = array[index]
        begin, end = part(number, pieces, share, more, np.uint64(WARP), row.size)
        first, last, width = np.int64(begin), np.int64(end), across * warps
        if first + deep * width <= last:
            for warp in range(warps):
                fold(kept[warp * across :], row, first + warp * deep * across, across, True)
            first += deep * width
            while first + deep * width <= last:
                for warp in range(warps):
                    fold(kept[warp * across :], row, first + warp * deep * across, across, False)
                first += deep * width
        else:
            line = row[first:]
            for x in range(width):
                kept[x] = line[x]
            first += width
        if deep > 4 and first + 4 * width <= last:
            a, b, c, d = several(row, first, width)
            for x in range(width):
                kept[x] = core(kept[x], core(core(a[x], b[x]), core(c[x], d[x])))
            first += 4 * width
        while first < last:
            line = row[first:]
            for x in range(min(width, last - first)):
                kept[x] = core(kept[x], line[x])
            first += width
        for warp in range(warps):
            together(kept[warp * across :], across)
            kept[warp] = kept[warp * across]
        together(kept, warps)
        out[index][number] = kept[0]

    made: Dispatcher = jit(reduce_rows, reproducible=True)
    return made


def by_pieces(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the same for the CPU: a block is one thread."""
    reduced = piece_by_piece(core, dtype)

    def reduce_rows(pieces, steps, extents, array, out, lanes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        block = type(pieces)(cuda.blockIdx.x)
        index, number, count = outer_index(block // pieces, steps, extents), np.int64(block % pieces), np.int64(pieces)
        row = array[index]
        piece = row[row.size * number // count : row.size * (number + 1) // count]
        out[index][number] = reduced(piece, lanes)

    made: Dispatcher = jit(reduce_rows)
    return made


def down_tiles(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the kernel for GPUs that reduces columns: no part of them has fewer rows than a block has threads down."""

    @jit(device=True, inline=True)
    def several(rows, at, step, j):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        a, b = rows[at, j], rows[at + step, j]
        c, d = rows[at + np.uint64(2) * step, j], rows[at + np.uint64(3) * step, j]
        return core(core(a, b), core(c, d))

    def reduce_columns(count, wide, share, more, steps, extents, array, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        shared = cuda.shared.array((DOWN, WARP), dtype)
        x, y, height = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockDim.y
        number = np.uint32(np.uint32(cuda.blockIdx.x) // wide)
        j = np.uint64(np.uint32(cuda.blockIdx.x) - np.uint32(number * wide)) * np.uint64(WARP) + np.uint64(x)
        block = type(count)(type(count)(cuda.blockIdx.z) * type(count)(cuda.gridDim.y) + type(count)(cuda.blockIdx.y))
        if block >= count:
            return
        index = outer_index(block, steps, extents)
        rows = array[index]
        here = j < np.uint64(rows.shape[1])
        if here:
            parts = np.uint32(cuda.gridDim.x) // wide
            first, end = part(number, parts, share, more, np.uint64(1), len(rows))
            step, tile = np.uint64(height), np.uint64(DOWN_DEEP * height)
            at = first + np.uint64(y)
            if first + tile <= end:
                value = several(rows, at, step, j)
                at += tile
                first += tile
                while first + tile <= end:
                    value = core(value, several(rows, at, step, j))
                    at += tile
                    first += tile
            else:
                value = rows[at, j]
                at += step
            while at < end:
                value = core(value, rows[at, j])
                at += step
            shared[y, x] = value
        cuda.syncthreads()
        active = height
        while active > 1:
            active //= 2
            if y < active and here:
                shared[y, x] = core(shared[y, x], shared[y + active, x])
            cuda.syncthreads()
        if y == 0 and here:
            out[index][np.uint64(number), j] = shared[0, x]

    made: Dispatcher = jit(reduce_columns)
    return made


def down_by_one(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the kernel for the CPU that takes the steps of `down_tiles` in their order.

    One thread has `width` columns, and the work of all `height` threads down.
    """

    @jit(device=True, inline=True)
    def fold(kept, y, rows, at, step, left, own, begins):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # Slices, whose indices start at 0, so that loops over them are vectorized.
        a, b, c, d = rows[at][left:], rows[at + step][left:], rows[at + 2 * step][left:], rows[at + 3 * step][left:]
        line = kept[y]
        if begins:
            for j in range(own):
                line[j] = core(core(a[j], b[j]), core(c[j], d[j]))
        else:
            for j in range(own):
                line[j] = core(line[j], core(core(a[j], b[j]), core(c[j], d[j])))

    def reduce_columns(count, pieces, share, more, steps, extents, array, out, height, width):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        block = type(pieces)(cuda.blockIdx.z) * type(pieces)(cuda.gridDim.y) + type(pieces)(cuda.blockIdx.y)
        if block >= count:
            return
        kept = cuda.local.array((DOWN, LINE), dtype)
        index, number = outer_index(block // pieces, steps, extents), np.int64(block % pieces)
        rows = array[index]
        begin, end = part(number, pieces, share, more, np.uint64(1), len(rows))
        first, last = np.int64(begin), np.int64(end)
        left = width * cuda.blockIdx.x
        own = min(width, rows.shape[1] - left)
        tile = DOWN_DEEP * height
        if first + tile <= last:
            for y in range(height):
                fold(kept, y, rows, first + y, height, left, own, True)
            first += tile
            while first + tile <= last:
                for y in range(height):
                    fold(kept, y, rows, first + y, height, left, own, False)
                first += tile
        else:
            for y in range(height):
                line, row = kept[y], rows[first + y][left:]
                for j in range(own):
                    line[j] = row[j]
            first += height
        for at in range(first, last):
            line, row = kept[(at - first) % height], rows[at][left:]
            for j in range(own):
                line[j] = core(line[j], row[j])
        active = height
        while active > 1:
            active //= 2
            for y in range(active):
                line, other = kept[y], kept[y + active]
                for j in range(own):
                    line[j] = core(line[j], other[j])
        line, row = kept[0], out[index][number][left:]
        for j in range(own):
            row[j] = line[j]

    made: Dispatcher = jit(reduce_columns, reproducible=True)
    return made


def abreast(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the same for the CPU: a block is one thread, which goes down `width` columns at once."""

    def reduce_columns(count, pieces, steps, extents, array, out, width):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        block = type(pieces)(cuda.blockIdx.z) * type(pieces)(cuda.gridDim.y) + type(pieces)(cuda.blockIdx.y)
        if block >= count:
            return
        index, number, parts = outer_index(block // pieces, steps, extents), np.int64(block % pieces), np.int64(pieces)
        rows = array[index]
        left, first, end = width * cuda.blockIdx.x, len(rows) * number // parts, len(rows) * (number + 1) // parts
        own = min(width, rows.shape[1] - left)
        kept = cuda.local.array(ABREAST, dtype)
        line = rows[first][left:]
        for j in range(own):
            kept[j] = line[j]
        for i in range(first + 1, end):
            line = rows[i][left:]
            for j in range(own):
                kept[j] = core(kept[j], line[j])
        line = out[index][number][left:]
        for j in range(own):
            line[j] = kept[j]

    made: Dispatcher = jit(reduce_columns)
    return made
