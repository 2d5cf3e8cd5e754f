"""The kernels of ufuncs and generalized ufuncs: ordinary kernels, made for the function that they call.

Operands are tuples, so that one text serves any number of them and of results. A thread's number says which element it
computes; an operand that is no array is the same for all.
"""

from __future__ import annotations

import numpy as np

from weft import cuda
from weft.cuda._jit import jit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import Dispatcher


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def element(operand: Any, index: Any) -> Any:
    """Give the element at the indices of the operand's own axes; without axes it is a number, or an array of one."""
    if isinstance(operand, np.ndarray):
        return operand[index] if len(index) else operand[0]
    return operand


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def put(outs: Any, index: Any, values: Any) -> None:
    """Store a result, or each of several."""
    if len(outs) == 1:
        outs[0][index] = values
    else:
        for out, value in zip(outs, values):  # noqa: B905
            out[index] = value


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def outer_index(number: Any, divisors: Any, extents: Any) -> Any:
    """Give the indices of all axes but the last: divisors are products of the extents of later axes."""
    if len(divisors) == 1:
        return (number,)
    rest = tuple(number // step % extent for step, extent in zip(divisors[1:], extents))  # noqa: B905
    return (number // divisors[0], *rest)


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def same(x: Any) -> Any:
    """Give what it is given."""
    return x


def everywhere(core: Dispatcher) -> Dispatcher:
    """Make what computes and stores one element's results."""

    @jit(device=True, inline=True)
    def store(outs, index, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        put(outs, index, core(*values))

    made: Dispatcher = store
    return made


def where_true(core: Dispatcher) -> Dispatcher:
    """Make what computes and stores one element's results if the last of the values is true."""

    @jit(device=True, inline=True)
    def store(outs, index, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if values[-1]:
            put(outs, index, core(*values[:-1]))

    made: Dispatcher = store
    return made


def line(store: Dispatcher, axes: tuple[tuple[int, ...], ...]) -> Dispatcher:
    """Make the kernel over one axis; `axes` says for each argument whether it has it."""

    def elements(count, inputs, outs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            index = (i,)
            pairs = zip(inputs, axes)  # noqa: B905
            store(outs, i, tuple(element(operand, tuple(index[axis] for axis in own)) for operand, own in pairs))

    made: Dispatcher = jit(elements)
    return made


def grid(store: Dispatcher, axes: tuple[tuple[int, ...], ...]) -> Dispatcher:
    """Make the kernel over several axes: x along the last, y and z along all others; `axes` are those of each argument.

    A broadcast argument is an array of only its own axes, so that it remains contiguous.
    `rows`, `steps` and `extents` are unsigned: 32 bits where that is enough, since GPUs divide 64 bits slowly.
    """

    def elements(rows, columns, steps, extents, inputs, outs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        j = cuda.grid(1)
        block = cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y
        row = block * cuda.blockDim.y + cuda.threadIdx.y
        if row < rows and j < columns:
            index = (*tuple(np.int64(i) for i in outer_index(type(rows)(row), steps, extents)), j)
            pairs = zip(inputs, axes)  # noqa: B905
            store(outs, index, tuple(element(operand, tuple(index[axis] for axis in own)) for operand, own in pairs))

    made: Dispatcher = jit(elements)
    return made


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def part(operand: Any, index: Any) -> Any:
    """Give what an array has at the first indices, or the number itself."""
    if isinstance(operand, np.ndarray):
        return operand[index]
    return operand


def each(core: Dispatcher) -> Dispatcher:
    """Make the kernel that calls a function with parts of arrays, one thread a call."""

    def calls(count, steps, extents, operands):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            index = outer_index(type(count)(i), steps, extents)
            core(*tuple(part(operand, index) for operand in operands))

    made: Dispatcher = jit(calls)
    return made


def running(core: Dispatcher) -> Any:
    """Make the function of a generalized ufunc that gives what each element and all before it make."""

    def reduce_so_far(row, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        value = row[0]
        out[0] = value
        for i in range(1, row.size):
            value = core(value, row[i])
            out[i] = value

    return reduce_so_far


def sequential_updates(core: Dispatcher, unary: bool) -> Dispatcher:
    """Make the kernel that changes elements by one value after the other, one thread an element.

    `order` holds the numbers of the values in the order of their elements, `bounds` where those of an element begin.
    """

    def change(count, array, places, bounds, order, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            value = array[places[i]]
            for k in range(bounds[i], bounds[i + 1]):
                value = core(value) if unary else core(value, element(values, (order[k],)))
            array[places[i]] = value

    made: Dispatcher = jit(change)
    return made


@jit(device=True, inline=True)  # type: ignore[untyped-decorator]
def chosen(value: Any, mask: Any, other: Any) -> Any:
    """Give an element where it counts, and what makes no difference elsewhere."""
    return value if mask else other


def along_where(core: Dispatcher) -> Any:
    """Make the function of a generalized ufunc that reduces those elements of an array that count, with a value."""

    def reduce_some(row, mask, start, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        value = start
        for i in range(row.size):
            if mask[i]:
                value = core(value, row[i])
        out[0] = value

    return reduce_some


def along(core: Dispatcher) -> Any:
    """Make the function of a generalized ufunc that reduces an array."""

    def reduce_row(row, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        value = row[0]
        for i in range(1, row.size):
            value = core(value, row[i])
        out[0] = value

    return reduce_row
