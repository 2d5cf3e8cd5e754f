"""The kernels over the elements of arrays, and the arguments that they are launched with."""

from __future__ import annotations

import functools

import numpy as np

from weft.cuda._memory.device_array import DeviceNDArray, array_at
from weft.cuda._memory.making import device_array
from weft.cuda._ufunc import placing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft._weft import Dispatcher

# Threads in a block.
BLOCK = 256


class Elements:
    """The kernels that call a device function for each element."""

    def __init__(self, core: Dispatcher) -> None:
        self.core = core
        self._kernels: dict[tuple[bool, bool, tuple[tuple[int, ...], ...]], Dispatcher] = {}

    def _kernel(self, one: bool, masked: bool, axes: tuple[tuple[int, ...], ...]) -> Dispatcher:
        """Give the kernel over one axis or several, for arguments with these axes."""
        kernel = self._kernels.get((one, masked, axes))
        if kernel is None:
            from weft.cuda._ufunc import kernels

            store = (kernels.where_true if masked else kernels.everywhere)(self.core)
            make = kernels.line if one else kernels.grid
            kernel = self._kernels[one, masked, axes] = make(store, axes)
        return kernel

    def run(
        self, inputs: Sequence[Any], outs: Sequence[DeviceNDArray], stream: Any, block: int, masked: bool = False
    ) -> None:
        """Compute all elements of the results of arrays on the device that broadcast to their shape.

        If `masked`, the last input is the mask: other elements are unchanged.
        """
        shape, count = outs[0].shape, outs[0].size
        if not count:
            return
        arrays = [operand for operand in (*inputs, *outs) if isinstance(operand, DeviceNDArray)]
        if all(array.shape == shape and array.is_c_contiguous() for array in arrays):
            axes = tuple((0,) if isinstance(operand, DeviceNDArray) else () for operand in inputs)
            if len(shape) != 1:
                inputs, outs = [flat(operand, count) for operand in inputs], [flat(out, count) for out in outs]
            launch = configured(self._kernel(True, masked, axes), -(-count // block), block, stream)
            launch(count, tuple(inputs), tuple(outs))
            return
        extents, steps = placing.merged(shape, [placing.strides_of(array, shape) for array in arrays])
        if not extents:
            extents, steps = [1], [[array.itemsize] for array in arrays]
        if len(extents) > placing.MOST_AXES:
            msg = f"the arguments have {len(extents)} axes with different strides: the limit is {placing.MOST_AXES}"
            raise ValueError(msg)
        given = iter([placing.reduced(array, extents, own) for array, own in zip(arrays, steps, strict=True)])
        found = [next(given) if isinstance(operand, DeviceNDArray) else (operand, ()) for operand in inputs]
        outs = [placing.view(out, extents, own) for out, own in zip(outs, steps[-len(outs) :], strict=True)]
        kernel = self._kernel(len(extents) == 1, masked, tuple(axes for _, axes in found))
        views = tuple(operand for operand, _ in found)
        if len(extents) == 1:
            configured(kernel, -(-count // block), block, stream)(count, views, tuple(outs))
            return
        columns = extents[-1]
        rows, row_steps, row_extents = placing.outer_divisors(extents[:-1])
        across = min(block, 1 << (columns - 1).bit_length())
        down = min(max(block // across, 1), 64)
        high = -(-int(rows) // down)
        deep = -(-high // 65535)
        blocks = -(-columns // across), -(-high // deep), deep
        launch = configured(kernel, blocks, (across, down), stream)
        launch(rows, columns, row_steps, row_extents, views, tuple(outs))


def configured(kernel: Dispatcher, blocks: Any, threads: Any, stream: Any) -> Any:
    """Configure a kernel of weft's own: nothing is said of a grid that the caller did not choose."""
    return kernel.configure(blocks, threads, stream, advise=False)


def flat(operand: Any, count: int) -> Any:
    """Give a contiguous array with one axis, or a number as it is."""
    if not isinstance(operand, DeviceNDArray):
        return operand
    return placing.view(operand, [count], [operand.itemsize])


@functools.cache
def same() -> Elements:
    from weft.cuda._ufunc import kernels

    return Elements(kernels.same)


@functools.cache
def chosen() -> Elements:
    from weft.cuda._ufunc import kernels

    return Elements(kernels.chosen)


def cast(operand: Any, dtype: np.dtype[Any], stream: Any) -> Any:
    """Give an argument as a dtype, with whatever loss that has."""
    if not isinstance(operand, DeviceNDArray):
        return np.asarray(operand).astype(dtype)[()]
    if operand.dtype.kind == "c" and dtype.kind != "c":
        # The real parts have the same addresses, and half the item size.
        part = np.empty(0, operand.dtype).real.dtype
        owner, at, device, readonly = operand.owner, operand.address, operand.device, operand.readonly
        operand = array_at(owner, at, operand.shape, operand.strides, part, device, readonly)
    return operand if operand.dtype == dtype else converted(operand, dtype, stream)


def converted(array: DeviceNDArray, dtype: np.dtype[Any], stream: Any, order: Any = None) -> DeviceNDArray:
    """Give a copy of a device array with elements of a dtype."""
    order = order or placing.order_of([array], array.shape)
    fresh = device_array(array.shape, dtype, order=order, stream=stream)
    same().run([array], [fresh], stream, BLOCK)
    return fresh
