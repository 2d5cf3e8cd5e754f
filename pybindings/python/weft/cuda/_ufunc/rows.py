"""Reductions along one axis: which kernel, and how many threads and blocks (`row_kernels.py` has the kernels).

Where the axis is the one that memory goes along, a few lanes of a warp, some warps or some blocks have a row. Where
memory goes along another axis, the threads of a block go down columns side by side. Else a thread has a row. If several
blocks reduce one row, a second launch combines their results. Where bits are to be the same everywhere, a thread of the
CPU does what a block of a GPU does.
"""

from __future__ import annotations

import numpy as np

from weft.cuda._memory.making import device_array
from weft.cuda._reduce import LANES, LEAST, PIECES, cores, in_pieces, on_cpu
from weft.cuda._ufunc import placing, row_kernels
from weft.cuda._ufunc.gufunc import GUfunc
from weft.cuda._ufunc.kernels import along
from weft.cuda._ufunc.row_kernels import ABREAST, DOWN, LINE, WARP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft._weft import Dispatcher, Type

# For GPUs, measured on an H200: threads of a block with several rows; the most warps per row, and the iterations of a
# warp from which twice as many warps pay off; sufficient blocks per multiprocessor, for rows and for columns; the
# fewest elements of a block; the largest stride in elements for which the elements of a row share cache lines.
_THREADS = 256
_WARPS = 8
_TURNS = 4
_BLOCKS = 16
_TILES = 8
_PIECE = 4096
_APART = 4
# Rows with a large stride: the row length from which several threads per row pay off, and the number of rows per
# multiprocessor from which they do not.
_ROW = 64
_ROWS = 1024
# The fewest columns for the column kernel; the rows per thread that justify another block, and those that justify more
# than the fewest threads along a column if the warps already fill each multiprocessor; the number of warps that do.
_COLUMNS = 16
_DEPTH = 16
_LONG = 64
_LEAST_DOWN = 4
_FULL = 64
# The largest grid along x, and along y and z.
_GRID_X = (1 << 31) - 1
_GRID = 65535


class RowReduction(GUfunc):
    """The generalized ufunc `(n)->()` that reduces by a function of two, which may be applied in any order."""

    def __init__(self, core: Dispatcher, ty: Type) -> None:
        super().__init__(along(core), [(ty[:], ty[:])], "(n)->()")
        self._function = core, ty
        self._made: dict[Any, Dispatcher] = {}

    def _kernel_for(self, make: Any, *how: Any) -> Dispatcher:
        kernel = self._made.get((make, *how))
        if kernel is None:
            kernel = self._made[make, *how] = make(*self._function, *how)
        return kernel

    def _launch(self, extents: Sequence[int], operands: Sequence[Any], stream: Any) -> None:
        """Reduce the last axis of an array to that of the other, of one element."""
        array, out = operands
        item = array.itemsize
        if array.strides[-1] != item and array.strides[-2] == item and extents[-1] >= _COLUMNS:
            self._down(extents, array, out, stream)
        elif not (self._pieces if in_pieces() else self._lanes)(extents, array, out, stream):
            super()._launch(extents, operands, stream)

    def _lanes(self, extents: Sequence[int], array: Any, out: Any, stream: Any) -> bool:
        """Reduce rows on a GPU, unless a thread each is better."""
        count, steps, rest = placing.outer_divisors(extents)
        length = array.shape[-1]
        is_apart = abs(array.strides[-1]) > _APART * array.itemsize
        if is_apart and (length < _ROW or count >= _ROWS * cores()):
            return False
        parts = max(min(-(-_BLOCKS * cores() // int(count)), length // _PIECE, _GRID), 1)
        deep = 8 if array.itemsize <= 4 else 4
        lanes, warps = 1, 1
        while lanes < WARP and 2 * lanes * deep <= length:
            lanes *= 2
        while lanes == WARP and warps < _WARPS and 2 * warps * WARP * deep * _TURNS <= length // parts:
            warps *= 2
        rows = _THREADS // lanes if warps == 1 else 1
        blocks = -(-int(count) // rows)
        if (int(count) * parts if on_cpu() else blocks) > _GRID_X:
            return False
        into = out
        if parts > 1:
            into = device_array((*extents, parts), array.dtype, stream=stream)
        share, more = divmod(length // WARP, parts)
        if on_cpu():
            kernel = self._kernel_for(row_kernels.along_by_one, deep)
            kernel.configure(int(count) * parts, 1, stream, advise=False)(
                type(count)(parts), np.uint64(share), np.uint64(more), steps, rest, array, into, warps, lanes
            )
        else:
            kernel = self._kernel_for(row_kernels.along, lanes, deep)
            kernel.configure((blocks, parts), (lanes * warps, rows), stream, advise=False)(
                count, np.uint64(share), np.uint64(more), steps, rest, array, into
            )
        if parts > 1:
            self._launch(extents, (into, out), stream)
        return True

    def _pieces(self, extents: Sequence[int], array: Any, out: Any, stream: Any) -> bool:
        """Reduce rows on the CPU, unless a thread each is better."""
        count, steps, rest = placing.outer_divisors(extents)
        length = array.shape[-1]
        if array.strides[-1] != array.itemsize or length <= 2 * LANES:
            return False
        pieces = max(min(-(-PIECES * cores() // int(count)), length // LEAST), 1)
        if int(count) * pieces > _GRID_X:
            return False
        into = out
        if pieces > 1:
            into = device_array((*extents, pieces), array.dtype, stream=stream)
        self._kernel_for(row_kernels.by_pieces).configure(int(count) * pieces, 1, stream, advise=False)(
            type(count)(pieces), steps, rest, array, into, LANES
        )
        if pieces > 1:
            self._launch(extents, (into, out), stream)
        return True

    def _down(self, extents: Sequence[int], array: Any, out: Any, stream: Any) -> None:
        """Reduce columns: memory goes along the last of the outer axes."""
        outer, inner, length = list(extents[:-1]) or [1], extents[-1], array.shape[-1]
        own = list(array.strides[:-2]) if len(extents) > 1 else [array.nbytes]
        sheets = placing.view(array, [*outer, length, inner], [*own, array.strides[-1], array.strides[-2]])
        own = list(out.strides[:-2]) if len(extents) > 1 else [out.nbytes]
        lines = placing.view(out, [*outer, 1, inner], [*own, out.itemsize * inner, out.strides[-2]])
        count = int(placing.outer_divisors(outer)[0])
        wide = -(-inner // (ABREAST if in_pieces() else WARP))
        wanted, least = (PIECES, LANES) if in_pieces() else (_TILES, _DEPTH * DOWN)
        parts = max(min(-(-wanted * cores() // (count * wide)), length // least), 1)
        tiles = self._tiles_abreast if in_pieces() else self._tiles_down
        if parts == 1:
            tiles(outer, wide, 1, sheets, lines, stream)
            return
        between = device_array((*outer, parts, inner), array.dtype, stream=stream)
        tiles(outer, wide, parts, sheets, between, stream)
        tiles(outer, wide, 1, between, lines, stream)

    def _tiles_down(self, outer: Sequence[int], wide: int, parts: int, array: Any, out: Any, stream: Any) -> None:
        count, steps, rest = placing.outer_divisors(outer)
        share, more = divmod(array.shape[-2], parts)
        down = 1
        while down < DOWN and down * 2 <= share:
            down *= 2
        while down > _LEAST_DOWN and share < _LONG * down and int(count) * wide * parts * down >= 2 * _FULL * cores():
            down //= 2
        if on_cpu():
            blocks = int(count) * parts
            grid = (-(-array.shape[-1] // LINE), min(blocks, _GRID), -(-blocks // _GRID))
            self._kernel_for(row_kernels.down_by_one).configure(grid, 1, stream, advise=False)(
                type(count)(blocks), type(count)(parts), np.uint64(share), np.uint64(more), steps, rest, array, out,
                down, LINE,
            )  # fmt: skip
            return
        grid = (wide * parts, min(int(count), _GRID), -(-int(count) // _GRID))
        self._kernel_for(row_kernels.down_tiles).configure(grid, (WARP, down), stream, advise=False)(
            count, np.uint32(wide), np.uint64(share), np.uint64(more), steps, rest, array, out
        )

    def _tiles_abreast(self, outer: Sequence[int], wide: int, parts: int, array: Any, out: Any, stream: Any) -> None:
        count, steps, rest = placing.outer_divisors(outer)
        blocks = int(count) * parts
        grid = (wide, min(blocks, _GRID), -(-blocks // _GRID))
        self._kernel_for(row_kernels.abreast).configure(grid, 1, stream, advise=False)(
            type(count)(blocks), type(count)(parts), steps, rest, array, out, ABREAST
        )
