"""The kernels of indices that are arrays, and of masks: ordinary kernels.

Memory is a line of words, and an element an offset into it: of the result's axes one, `where`, has its offsets in an
array, each of the others a step.
"""

from __future__ import annotations

import functools

import numpy as np

from weft import cuda
from weft.cuda._jit import jit
from weft.cuda._ufunc.kernels import element, outer_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft._weft import Dispatcher


@functools.cache
def take_line() -> Dispatcher:
    """Make the kernel that reads the words at offsets."""

    def read_words(count, line, offsets, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            out[i] = line[offsets[i]]

    made: Dispatcher = jit(read_words)
    return made


@functools.cache
def take(where: int) -> Dispatcher:
    """Make the kernel that reads words along several axes, of which one has the offsets: x along the last."""

    def read_rows(rows, columns, steps, extents, strides, line, offsets, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        j = cuda.grid(1)
        block = cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y
        row = block * cuda.blockDim.y + cuda.threadIdx.y
        if row < rows and j < columns:
            index = (*tuple(np.int64(i) for i in outer_index(type(rows)(row), steps, extents)), j)
            at = sum(tuple(i * stride for i, stride in zip(index, strides)))  # noqa: B905
            out[index] = line[at + offsets[index[where]]]

    made: Dispatcher = jit(read_rows)
    return made


@functools.cache
def put_line(many: bool) -> Dispatcher:
    """Make the kernel that writes words at offsets: one for each, or the same to all."""
    axes = (0,) if many else ()

    def write_words(count, line, offsets, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            index = (i,)
            line[offsets[i]] = element(values, tuple(index[axis] for axis in axes))

    made: Dispatcher = jit(write_words)
    return made


@functools.cache
def put(where: int, axes: tuple[int, ...]) -> Dispatcher:
    """Make the kernel that writes words along several axes; `axes` are those that the values have."""

    def write_rows(rows, columns, steps, extents, strides, line, offsets, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        j = cuda.grid(1)
        block = cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y
        row = block * cuda.blockDim.y + cuda.threadIdx.y
        if row < rows and j < columns:
            index = (*tuple(np.int64(i) for i in outer_index(type(rows)(row), steps, extents)), j)
            at = sum(tuple(i * stride for i, stride in zip(index, strides)))  # noqa: B905
            line[at + offsets[index[where]]] = element(values, tuple(index[axis] for axis in axes))

    made: Dispatcher = jit(write_rows)
    return made


@functools.cache
def add_offsets() -> Dispatcher:
    """Make the kernel that adds what the indices of one axis mean, or notes the first that is out of bounds."""

    def offsets_of(count, indices, extent, stride, out, wrong, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            index = indices[i]
            if index < -extent or index >= extent:
                cuda.atomic.min(wrong, number, i)
            else:
                if index < 0:
                    index += extent
                out[i] += index * stride

    made: Dispatcher = jit(offsets_of)
    return made


@functools.cache
def add_at_indices() -> Dispatcher:
    """Make the kernel that adds what the numbers of elements along several axes mean."""

    def offsets_of(count, numbers, steps, extents, strides, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            index = outer_index(numbers[i], steps, extents)
            out[i] += sum(tuple(i * stride for i, stride in zip(index, strides)))  # noqa: B905

    made: Dispatcher = jit(offsets_of)
    return made


# --- Prefix sums: each thread has a contiguous chunk ---


@functools.cache
def piece_sums() -> Dispatcher:
    """Make the kernel that adds up the numbers of each piece."""

    def sum_pieces(count, piece, numbers, sums):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        t = cuda.grid(1)
        if t < sums.size:
            total = np.int64(0)
            for i in range(t * piece, min((t + 1) * piece, count)):
                total += np.int64(numbers[i])
            sums[t] = total

    made: Dispatcher = jit(sum_pieces)
    return made


@functools.cache
def sums_before() -> Dispatcher:
    """Make the kernel that makes of each number the sum of those before it; `starts` has it for each piece.

    The last number is followed by the sum of all.
    """

    def add_before(count, piece, numbers, starts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        t = cuda.grid(1)
        if t < starts.size:
            total = starts[t]
            for i in range(t * piece, min((t + 1) * piece, count)):
                own = numbers[i]
                numbers[i] = total
                total += own
            if (t + 1) * piece >= count:
                numbers[count] = total

    made: Dispatcher = jit(add_before)
    return made


@functools.cache
def true_indices() -> Dispatcher:
    """Make the kernel that writes the number of each true element of a mask where those before it end."""

    def list_true(count, piece, mask, starts, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        t = cuda.grid(1)
        if t < starts.size - 1:
            at = starts[t]
            for i in range(t * piece, min((t + 1) * piece, count)):
                if mask[i]:
                    out[at] = i
                    at += 1

    made: Dispatcher = jit(list_true)
    return made
