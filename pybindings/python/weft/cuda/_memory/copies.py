"""Copies between device arrays on their device: of elements as they are, of converted ones, of one for all.

Elements that are not converted are copied as unsigned integers of 1 to 8 bytes: records, strings and all dtypes of
one size share their kernels. Arrays that overlap are copied as if through a third one.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from weft import _weft
from weft.cuda._memory import observed
from weft.cuda._memory.device_array import DeviceNDArray, array_at, write
from weft.cuda._memory.making import as_cuda_array, device_array, to_device
from weft.cuda._memory.ordering import ordered
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import BLOCK, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The kinds of dtypes that kernels convert to each other. bfloat16 is another one, but not a NumPy kind.
_NUMBERS = "biufc"


def word_of(*arrays: DeviceNDArray) -> int:
    """Return the size of the largest integer that divides the elements, addresses and strides of all arrays."""
    every = 8
    for array in arrays:
        steps = [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1]
        every = math.gcd(every, array.itemsize, array.address, *steps)
    return every


def as_unsigned(array: DeviceNDArray, word: int) -> DeviceNDArray:
    """View an array as unsigned integers of `word` bytes; a last axis is added if an element has several."""
    shape, strides = array.shape, array.strides
    if array.itemsize != word:
        shape, strides = (*shape, array.itemsize // word), (*strides, word)
    return array_at(array.owner, array.address, shape, strides, np.dtype(f"u{word}"), array.device, array.readonly)


def spread(array: DeviceNDArray, shape: tuple[int, ...]) -> DeviceNDArray:
    """Give an array broadcast to a shape, as a view."""
    if array.shape == shape:
        return array
    return placing.view(array, shape, placing.strides_of(array, shape))


def empty_like(array: DeviceNDArray, dtype: Any = None, order: Any = "K", stream: Any = 0) -> DeviceNDArray:
    """Make an array without gaps of the shape of another; order ``"K"`` keeps the order of its axes in memory."""
    dtype = array.dtype if dtype is None else np.dtype(dtype)
    if order not in ("C", "F", "A", "K"):
        msg = f"order must be 'C', 'F', 'A' or 'K', not {order!r}"
        raise ValueError(msg)
    if order == "A":
        order = "F" if array.is_f_contiguous() and not array.is_c_contiguous() else "C"
    if order == "K":
        steps = _weft.dense_strides(array.shape, [abs(step) for step in array.strides], dtype.itemsize)
        return device_array(array.shape, dtype, steps if array.ndim else None, stream=stream)
    return device_array(array.shape, dtype, order=order, stream=stream)


def compact(array: DeviceNDArray, order: Any = "C", stream: Any = 0) -> DeviceNDArray:
    """Give a copy of an array without gaps."""
    fresh = empty_like(array, order=order, stream=stream)
    move(array, fresh, stream)
    return fresh


def aligned(value: Any, stream: Any) -> Any:
    """Give a copy of a device array whose elements lie as in packed records, where kernels read none; or the value."""
    if not isinstance(value, DeviceNDArray) or aligned_at(value):
        return value
    return compact(value, "K", stream)


def aligned_at(array: DeviceNDArray) -> bool:
    """Whether numbers lie at multiples of their alignment."""
    at = array.dtype.alignment if array.dtype.kind in _NUMBERS else 1
    return not array.address % at and not any(
        step % at for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1
    )


def move(array: DeviceNDArray, to: DeviceNDArray, stream: Any) -> None:
    """Copy elements as they are into an array of the same dtype, to whose shape the first broadcasts."""
    if not to.size:
        return
    with observed.writing(
        to, array if array.device == to.device else observed.UNSEEN, "a copy between devices", stream
    ):
        _move(array, to, stream)


def _move(array: DeviceNDArray, to: DeviceNDArray, stream: Any) -> None:
    if array.device != to.device:
        write(to, spread(array, to.shape).copy_to_host(stream=array.stream), stream)
        return
    if placing.clash(array, to):
        array = compact(array, "K", stream)
    if array.shape == to.shape and (
        (array.is_c_contiguous() and to.is_c_contiguous()) or (array.is_f_contiguous() and to.is_f_contiguous())
    ):
        _weft.copy_on_device(to, array, stream)
        return
    word = word_of(array, to)
    _run(as_unsigned(spread(array, to.shape), word), as_unsigned(to, word), stream)


def _run(array: Any, to: DeviceNDArray, stream: Any) -> None:
    """Copy, converting, element by element; arrays with more axes than a kernel has, part by part."""
    operands = [array, to] if isinstance(array, DeviceNDArray) else [to]
    extents, _ = placing.merged(to.shape, [placing.strides_of(each, to.shape) for each in operands])
    if len(extents) <= placing.MOST_AXES:
        same().run([array], [to], stream, BLOCK)
        return
    axis = to.shape.index(min(extent for extent in to.shape if extent > 1))
    for number in range(to.shape[axis]):
        at = (*[slice(None)] * axis, number)
        _run(array[at] if isinstance(array, DeviceNDArray) else array, to[at], stream)


def convert(array: DeviceNDArray, to: DeviceNDArray, stream: Any) -> None:
    """Copy elements into an array of any dtype, to whose shape the first broadcasts, as NumPy's casting="unsafe" does.

    Raises
    ------
    TypeError
        A dtype is not one of numbers, and they differ.
    """
    if array.dtype == to.dtype:
        move(array, to, stream)
        return
    for dtype in (array.dtype, to.dtype):
        if dtype.kind not in _NUMBERS and not _is_bfloat16(dtype):
            msg = f"device arrays of {array.dtype} cannot be converted to {to.dtype}: copy them to the host first"
            raise TypeError(msg)
    if not to.size:
        return
    with observed.writing(to, array if array.device == to.device else observed.UNSEEN, "a conversion", stream):
        _convert(array, to, stream)


def _convert(array: DeviceNDArray, to: DeviceNDArray, stream: Any) -> None:
    if array.device != to.device:
        write(to, spread(array, to.shape).copy_to_host(stream=array.stream).astype(to.dtype), stream)
        return
    if placing.clash(array, to):
        array = compact(array, "K", stream)
    if array.dtype.kind == "c" and to.dtype.kind == "b":
        from weft.cuda._ufunc.numpy_ufuncs import on_device

        on_device(np.not_equal)(spread(array, to.shape), 0, out=to, stream=stream)
        return
    if array.dtype.kind == "c" and to.dtype.kind != "c":
        array = array.real
    array = aligned(array, stream)
    fresh = to if aligned_at(to) else empty_like(to, stream=stream)
    _run(spread(array, to.shape), fresh, stream)
    if fresh is not to:
        move(fresh, to, stream)


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return dtype.name == "bfloat16"


def warn_of_parts(source: np.dtype[Any], to: np.dtype[Any]) -> None:
    """Warn, as NumPy does, that a conversion drops imaginary parts."""
    if source.kind == "c" and to.kind not in "cb":
        text = "Casting complex values to real discards the imaginary part"
        warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=4)


def fill(to: DeviceNDArray, element: np.ndarray[Any, Any], stream: Any) -> None:
    """Write one element, an array of the dtype without axes, into all elements of an array."""
    if to.size <= 1:
        write(to, element.reshape(to.shape) if to.size else element, stream)
        return
    with observed.writing(to, None, "an assignment", stream):
        _fill(to, element, stream)


def _fill(to: DeviceNDArray, element: np.ndarray[Any, Any], stream: Any) -> None:
    word = word_of(to)
    bits = np.ascontiguousarray(element).reshape(1).view(f"u{word}")
    if bits.size == 1:
        _run(bits[0], as_unsigned(to, word), stream)
    else:
        words = as_unsigned(to, word)
        _run(spread(to_device(bits, stream), words.shape), words, stream)


def source(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Give what is assigned to a part of an array: a device array or a NumPy array that broadcasts to the shape.

    A NumPy array has the dtype: NumPy says what can be assigned, and how: no complex number to a real one, no number
    beyond the type's range. A device array has any, and may share memory with what it is assigned to.
    """
    from_device = isinstance(value, DeviceNDArray)
    if not from_device and hasattr(value, "__cuda_array_interface__") and not isinstance(value, np.ndarray):
        value, from_device = as_cuda_array(value), True
    # For an array of records, a tuple is a record.
    record = dtype.names is not None and not hasattr(value, "dtype")
    host: Any = value if from_device else np.asarray(value, dtype if record else None)
    more = max(host.ndim - len(shape), 0)
    if any(extent != 1 for extent in host.shape[:more]):
        msg = f"Can't assign {host.ndim}-D array to {len(shape)}-D self"
        raise ValueError(msg)
    extents = host.shape[more:]
    offset = len(shape) - len(extents)
    for axis, extent in enumerate(extents, offset):
        if extent not in (1, shape[axis]):
            msg = f"Can't copy sequence with size {extent} to array axis {axis} with dimension {shape[axis]}"
            raise ValueError(msg)
    if from_device:
        warn_of_parts(host.dtype, dtype)
        if not more:
            return host
        cut = array_at(host.owner, host.address, extents, host.strides[more:], host.dtype, host.device, host.readonly)
        cut.stream = host.stream
        return cut
    elements: np.ndarray[Any, Any] = np.empty(extents, dtype)
    elements[...] = host.reshape(extents) if isinstance(value, np.ndarray) else value
    return elements


def check_writable(array: DeviceNDArray) -> None:
    """Say that an array is read-only, if it is."""
    if array.readonly:
        msg = "assignment destination is read-only"
        raise ValueError(msg)


def assign(to: DeviceNDArray, value: Any, stream: Any = 0) -> None:
    """Assign a value to all of an array, broadcast and converted; see `DeviceNDArray.setitem`."""
    check_writable(to)
    with ordered([to, value], stream) as chosen:
        given = source(value, to.shape, to.dtype)
        if isinstance(given, DeviceNDArray):
            convert(given, to, chosen)
        elif given.shape == to.shape:
            write(to, given, chosen)
        elif given.size == 1:
            fill(to, given.reshape(()), chosen)
        elif given.size:
            move(to_device(given, chosen), to, chosen)
