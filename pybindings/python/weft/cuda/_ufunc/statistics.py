"""Means, variances, and indices of the smallest and the largest elements of device arrays.

They are made of reductions and of functions of elements, all of them on the device, in the stream of the array.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from weft import cuda
from weft.cuda._jit import jit
from weft.cuda._memory import copies
from weft.cuda._memory.making import device_array, to_device
from weft.cuda._memory.ordering import ordered
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import BLOCK, configured
from weft.cuda._ufunc.numpy_ufuncs import on_device
from weft.cuda._ufunc.reductions import axes_of
from weft.cuda._ufunc.ufunc import Ufunc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft.cuda._memory.device_array import DeviceNDArray


@functools.cache
def _squares() -> Ufunc:
    """Make the squared distance from a mean."""

    def squared_distance(x, mean):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        distance = x - mean
        return distance * distance

    return Ufunc(squared_distance, ())


@functools.cache
def _complex_squares() -> Ufunc:
    def squared_distance(x, mean):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        distance = x - mean
        return distance.real * distance.real + distance.imag * distance.imag

    return Ufunc(squared_distance, ())


@functools.cache
def _index_of(count: type[Any]) -> Ufunc:
    """Make the ufunc that returns an element's index if it equals the extreme value or is NaN, and else the maximum."""
    none = np.iinfo(count).max

    def number_of(x, found, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return number if x == found or x != x else count(none)

    return Ufunc(number_of, ())


def _axes(array: Any, axis: Any) -> tuple[int, ...]:
    return () if not array.ndim and axis in (None, 0, -1) else axes_of(axis, array.ndim)


def _into(result: DeviceNDArray, out: Any, stream: Any) -> Any:
    """Give a result, or the array that was given for it."""
    if out is None:
        return result
    if isinstance(out, tuple):
        (out,) = out
    if out.shape != result.shape:
        msg = f"the result has shape {result.shape}, the array for it, `out`, has {out.shape}"
        raise ValueError(msg)
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        msg = f"the result is {result.dtype}, which `out`, an array of {out.dtype}, cannot hold"
        raise TypeError(msg)
    if isinstance(out, np.ndarray):
        out[...] = result.copy_to_host(stream=stream)
    else:
        copies.assign(out, result, stream)
    return out


def _wide(array: Any, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Give the dtype of a mean, and the one that it is computed in."""
    if dtype is not None:
        found = np.dtype(dtype)
    elif array.dtype.kind in "biu":
        found = np.dtype(np.float64)
    else:
        found = array.dtype
    if found.kind not in "iufc":
        msg = f"a mean needs numbers, not {found}"
        raise TypeError(msg)
    return found, np.dtype(np.float32) if found == np.float16 else found


def _count(array: Any, axes: tuple[int, ...], keepdims: bool, where: Any, stream: Any) -> Any:
    """Give how many elements count: a number, or with `where` an array of the shape of the result."""
    if where is True:
        return math.prod(array.shape[axis] for axis in axes)
    mask = placing.mask_of(where, "mean")
    if placing.is_number(mask):
        mask = np.asarray(mask)
    if not hasattr(mask, "is_c_contiguous"):
        mask = to_device(mask, stream)
    if placing.broadcast([array.shape, mask.shape], "where") != array.shape:
        msg = f"`where` with shape {mask.shape} does not broadcast to {array.shape}"
        raise ValueError(msg)
    return on_device(np.add).reduce(copies.spread(mask, array.shape), axes, None, None, keepdims, stream=stream)


def _sum(array: Any, axes: tuple[int, ...], dtype: np.dtype[Any], keepdims: bool, where: Any, stream: Any) -> Any:
    return on_device(np.add).reduce(array, axes, dtype, None, keepdims, None, where, stream=stream)


def mean(array: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, where: Any) -> Any:
    """Give the means of a device array along axes; see `DeviceNDArray.mean`."""
    found, wide = _wide(array, dtype)
    axes = _axes(array, axis)
    with ordered([out, array, where]) as stream:
        total = _sum(array, axes, wide, keepdims, where, stream)
        result = on_device(np.true_divide)(
            total, _divisor(_count(array, axes, keepdims, where, stream), wide), stream=stream
        )
        result = result if result.dtype == found else result.astype(found, stream=stream)
        return _into(result, out, stream)


def _divisor(count: Any, dtype: np.dtype[Any]) -> Any:
    """Give a count as what a sum is divided by without becoming wider."""
    if not hasattr(count, "shape"):
        return float(count)
    real = np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
    return count.astype(real) if real.kind == "f" else count


def var(
    array: Any, axis: Any, dtype: Any, out: Any, ddof: float, keepdims: bool, where: Any, *, root: bool = False
) -> Any:
    """Give the variances of a device array along axes, or their roots; see `DeviceNDArray.var`."""
    found, wide = _wide(array, dtype)
    axes = _axes(array, axis)
    with ordered([out, array, where]) as stream:
        array = copies.aligned(array, stream)
        count = _count(array, axes, True, where, stream)
        total = _sum(array, axes, wide, True, where, stream)
        middle = on_device(np.true_divide)(total, _divisor(count, wide), stream=stream)
        given = array if array.dtype.kind in "fc" and array.dtype != np.float16 else array.astype(wide, stream=stream)
        squares = (_complex_squares() if given.dtype.kind == "c" else _squares())(given, middle, stream=stream)
        if squares.dtype != np.empty(0, wide).real.dtype and wide.kind in "fc":
            squares = squares.astype(np.empty(0, wide).real.dtype, stream=stream)
        total = _sum(squares, axes, squares.dtype, True, where, stream)
        if hasattr(count, "shape"):
            left = on_device(np.maximum)(on_device(np.subtract)(count, ddof, stream=stream), 0, stream=stream)
        else:
            left = max(count - ddof, 0)
        result = on_device(np.true_divide)(total, _divisor(left, squares.dtype), stream=stream)
        if root:
            result = on_device(np.sqrt)(result, stream=stream)
        if found.kind != "c" and result.dtype != found and found.kind == "f":
            result = result.astype(found, stream=stream)
        if not keepdims:
            result = result.reshape([extent for at, extent in enumerate(array.shape) if at not in axes])
        return _into(result, out, stream)


@functools.cache
def _first_index() -> Any:
    """Make the kernel that finds the first element that equals the extreme value or is NaN.

    `first` starts larger than any index. A thread tests it before it updates it atomically, because it only becomes
    smaller.
    """

    def find_first(count, array, found, first):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < count:
            x = array[i]
            if (x == found[0] or x != x) and i < first[0]:
                cuda.atomic.min(first, 0, i)

    return jit(find_first)


def _first(name: str, array: Any, shape: Sequence[int], stream: Any) -> DeviceNDArray:
    """Give the number of the first extreme element of all, in C order."""
    if array.ndim != 1 and not array.is_c_contiguous():
        array = copies.compact(array, "C", stream)
    steps = array.strides if array.ndim == 1 else [array.itemsize]
    line = placing.view(array, [array.size], steps)
    extreme = on_device(getattr(np, name)).reduce(line, None, None, None, True, stream=stream)
    result = device_array(shape, np.int64, stream=stream)
    copies.fill(result, np.array(array.size), stream)
    kernel = configured(_first_index(), -(-array.size // BLOCK), BLOCK, stream)
    kernel(array.size, line, extreme, placing.view(result, [1], [8]))
    return result


def arg_extreme(name: str, array: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    """Give the numbers of the first extreme elements along an axis; see `DeviceNDArray.argmin`."""
    if array.dtype.kind not in "biufc":
        msg = f"arg{name[:3]} of {array.dtype}: copy the array to the host first (`copy_to_host()`)"
        raise TypeError(msg)
    axes = axes_of(None if axis is None else operator.index(axis), array.ndim)
    count = math.prod(array.shape[at] for at in axes)
    if not count:
        msg = f"attempt to get arg{name[:3]} of an empty sequence"
        raise ValueError(msg)
    with ordered([out, array]) as stream:
        array = copies.aligned(array, stream)
        kept = [1 if at in axes else extent for at, extent in enumerate(array.shape)]
        shape = kept if keepdims else [extent for at, extent in enumerate(array.shape) if at not in axes]
        if 0 in shape:
            return _into(device_array(shape, np.int64, stream=stream), out, stream)
        if len(axes) == array.ndim:
            return _into(_first(name, array, shape, stream), out, stream)
        extreme = on_device(getattr(np, name)).reduce(array, axes, None, None, True, stream=stream)
        # Use 32-bit indices if they suffice.
        number = np.int32 if count < 1 << 31 else np.int64
        numbers = to_device(np.arange(count, dtype=number), stream).reshape(
            [extent if at in axes else 1 for at, extent in enumerate(array.shape)]
        )
        places = _index_of(number)(array, extreme, numbers, stream=stream)
        found = on_device(np.minimum).reduce(places, axes, None, None, True, stream=stream)
        result = found.astype(np.int64, stream=stream).reshape(shape)
        return _into(result, out, stream)
