"""Reductions along one axis: by threads, by blocks, or by several blocks whose values a second launch makes one.

Where the axis is the one that memory goes along, a block has a row, or a piece of one if there are few rows. Where
memory goes along another axis, the threads of a block go down columns side by side. Else a thread has a row.
"""

from __future__ import annotations

import numpy as np

from weft import cuda
from weft.cuda import _operands
from weft.cuda._gufunc import GUfunc
from weft.cuda._jit import jit
from weft.cuda._memory import device_array
from weft.cuda._reduce import LANES, LEAST, PIECES, THREADS, cores, in_pieces, meeting, piece_by_piece
from weft.cuda._ufunc_kernels import along, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft._weft import Dispatcher, Type

# On a GPU: a row that is worth a block; elements that are worth another one; rows that are enough for threads.
_ROW = 64
_PIECE = 8 * THREADS
_ROWS = 1024
_WARP = 32

# Columns: how many are worth it; a block's threads down; a thread's at once on the CPU.
_COLUMNS = 16
_DOWN = 16
_ABREAST = 1024
# Blocks along y and z, at most.
_GRID = 65535


def _by_blocks(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the kernel for GPUs that reduces rows: no block has fewer elements than threads."""
    meet = meeting(core, dtype)

    def reduce_rows(pieces, steps, extents, array, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        t, block = cuda.threadIdx.x, type(pieces)(cuda.blockIdx.x)
        index, number, count = place(block // pieces, steps, extents), np.int64(block % pieces), np.int64(pieces)
        row = array[index]
        piece = row[row.size * number // count : row.size * (number + 1) // count]
        value = piece[t]
        for i in range(t + cuda.blockDim.x, piece.size, cuda.blockDim.x):
            value = core(value, piece[i])
        value = meet(value, t)
        if t == 0:
            out[index][number] = value

    made: Dispatcher = jit(reduce_rows)
    return made


def _by_pieces(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the same for the CPU: a block is one thread."""
    reduced = piece_by_piece(core, dtype)

    def reduce_rows(pieces, steps, extents, array, out, lanes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        block = type(pieces)(cuda.blockIdx.x)
        index, number, count = place(block // pieces, steps, extents), np.int64(block % pieces), np.int64(pieces)
        row = array[index]
        piece = row[row.size * number // count : row.size * (number + 1) // count]
        out[index][number] = reduced(piece, lanes)

    made: Dispatcher = jit(reduce_rows)
    return made


def _columns_by_tiles(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the kernel for GPUs that reduces columns: no piece of them has fewer rows than a block has threads down."""

    def reduce_columns(count, pieces, steps, extents, array, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        shared = cuda.shared.array((_DOWN, _WARP), dtype)
        j, x, y = cuda.grid(1), cuda.threadIdx.x, cuda.threadIdx.y
        block = type(pieces)(cuda.blockIdx.z) * type(pieces)(cuda.gridDim.y) + type(pieces)(cuda.blockIdx.y)
        if block >= count:
            return
        index, number, parts = place(block // pieces, steps, extents), np.int64(block % pieces), np.int64(pieces)
        rows = array[index]
        first, end = len(rows) * number // parts, len(rows) * (number + 1) // parts
        if j < rows.shape[1]:
            value = rows[first + y, j]
            for i in range(first + y + cuda.blockDim.y, end, cuda.blockDim.y):
                value = core(value, rows[i, j])
            shared[y, x] = value
        cuda.syncthreads()
        active = cuda.blockDim.y
        while active > 1:
            active //= 2
            if y < active and j < rows.shape[1]:
                shared[y, x] = core(shared[y, x], shared[y + active, x])
            cuda.syncthreads()
        if y == 0 and j < rows.shape[1]:
            out[index][number, j] = shared[0, x]

    made: Dispatcher = jit(reduce_columns)
    return made


def _columns_abreast(core: Dispatcher, dtype: Any) -> Dispatcher:
    """Make the same for the CPU: a block is one thread, which goes down `abreast` columns at once."""

    def reduce_columns(  # type: ignore[no-untyped-def]  # noqa: ANN202
        count, pieces, steps, extents, array, out, abreast  # noqa: ANN001
    ):  # fmt: skip
        block = type(pieces)(cuda.blockIdx.z) * type(pieces)(cuda.gridDim.y) + type(pieces)(cuda.blockIdx.y)
        if block >= count:
            return
        index, number, parts = place(block // pieces, steps, extents), np.int64(block % pieces), np.int64(pieces)
        rows = array[index]
        left, first, end = abreast * cuda.blockIdx.x, len(rows) * number // parts, len(rows) * (number + 1) // parts
        width = min(abreast, rows.shape[1] - left)
        kept = cuda.local.array(_ABREAST, dtype)
        line = rows[first][left:]
        for j in range(width):
            kept[j] = line[j]
        for i in range(first + 1, end):
            line = rows[i][left:]
            for j in range(width):
                kept[j] = core(kept[j], line[j])
        line = out[index][number][left:]
        for j in range(width):
            line[j] = kept[j]

    made: Dispatcher = jit(reduce_columns)
    return made


class RowReduction(GUfunc):
    """The generalized ufunc `(n)->()` that reduces by a function of two, which may be applied in any order."""

    def __init__(self, core: Dispatcher, ty: Type) -> None:
        super().__init__(along(core), [(ty[:], ty[:])], "(n)->()")
        on_cpu = in_pieces()
        self._rows = _by_pieces(core, ty) if on_cpu else _by_blocks(core, ty)
        self._columns = _columns_abreast(core, ty) if on_cpu else _columns_by_tiles(core, ty)

    def _launch(self, extents: Sequence[int], operands: Sequence[Any], stream: Any) -> None:
        """Reduce the last axis of an array to that of the other, of one element."""
        array, out = operands
        length, item = array.shape[-1], array.itemsize
        if array.strides[-1] != item and array.strides[-2] == item and extents[-1] >= _COLUMNS:
            self._down(extents, array, out, stream)
            return
        count = array.size // length
        pieces = _pieces(count, length, array.strides[-1] == item)
        if not pieces or count * pieces >= 1 << 31:
            super()._launch(extents, operands, stream)
        elif pieces == 1:
            self._along(extents, 1, array, out, stream)
        else:
            partials = device_array((*extents, pieces), array.dtype, stream=stream)
            self._along(extents, pieces, array, partials, stream)
            self._launch(extents, (partials, out), stream)

    def _along(self, extents: Sequence[int], pieces: int, array: Any, out: Any, stream: Any) -> None:
        """Reduce each of some pieces of each row to an element of a row of the result."""
        count, steps, rest = _operands.outer_steps(extents)
        threads, more = 1, [LANES]
        if not in_pieces():
            threads, more = _WARP, []
            while threads < THREADS and threads * 8 <= array.shape[-1] // pieces:
                threads *= 2
        self._rows.configure(int(count) * pieces, threads, stream, advise=False)(
            type(count)(pieces), steps, rest, array, out, *more
        )

    def _down(self, extents: Sequence[int], array: Any, out: Any, stream: Any) -> None:
        """Reduce columns: memory goes along the last of the outer axes."""
        outer, inner, length = list(extents[:-1]) or [1], extents[-1], array.shape[-1]
        count, steps, rest = _operands.outer_steps(outer)
        own = list(array.strides[:-2]) if len(extents) > 1 else [array.nbytes]
        sheets = _operands.view(array, [*outer, length, inner], [*own, array.strides[-1], array.strides[-2]])
        own = list(out.strides[:-2]) if len(extents) > 1 else [out.nbytes]
        lines = _operands.view(out, [*outer, 1, inner], [*own, out.itemsize * inner, out.strides[-2]])
        abreast = _ABREAST if in_pieces() else _WARP
        wide = -(-inner // abreast)
        wanted, least = (PIECES, LANES) if in_pieces() else (8, 16 * _DOWN)
        pieces = max(min(-(-wanted * cores() // (int(count) * wide)), length // least), 1)
        target = lines
        if pieces > 1:
            target = device_array((*outer, pieces, inner), array.dtype, stream=stream)
        for source, into, parts in ((sheets, target, pieces), (target, lines, 1)):
            blocks, down = int(count) * parts, 1
            while not in_pieces() and down < _DOWN and down * 2 <= source.shape[-2] // parts:
                down *= 2
            grid = (wide, min(blocks, _GRID), -(-blocks // _GRID))
            threads, more = (1, [abreast]) if in_pieces() else ((abreast, down), [])
            self._columns.configure(grid, threads, stream, advise=False)(
                type(count)(blocks), type(count)(parts), steps, rest, source, into, *more
            )
            if pieces == 1:
                break


def _pieces(count: int, length: int, dense: bool) -> int:
    """Say how many blocks are to have a row each; 0 where a thread is to."""
    if in_pieces():
        if not dense or length <= 2 * LANES:
            return 0
        wanted, least = PIECES * cores(), LEAST
    else:
        if length < _ROW or (not dense and count >= _ROWS * cores()):
            return 0
        wanted, least = 4 * cores(), _PIECE
    return max(min(-(-wanted // count), length // least), 1)
