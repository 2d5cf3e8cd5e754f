"""Making device arrays: by shape, by copy, and of other libraries' memory without a copy."""

from __future__ import annotations

import math

from weft import _weft
from weft._weft import Memory
from weft.cuda._device_array import DeviceNDArray, DeviceRecord, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np

    from weft.cuda._device_array import Order


def device_array(
    shape: int | Sequence[int],
    dtype: Any = None,
    strides: int | Sequence[int] | None = None,
    order: Order = "C",
    stream: Any = 0,
) -> DeviceNDArray:
    """Make a device array with undefined contents.

    Parameters
    ----------
    shape
        Extents.
    dtype
        Element type; float64 unless given.
    strides
        Strides in bytes; those of ``order`` unless given.
    order
        ``"C"`` or ``"F"``.
    stream
        The stream that allocates, and that copies of the array use.
    """
    import numpy as np

    extents = _integers(shape, "shape")
    if any(extent < 0 for extent in extents):
        msg = f"the extents of an array cannot be negative, got shape {shape!r}"
        raise ValueError(msg)
    _check_order(order)
    element = _weft.as_dtype(np.float64 if dtype is None else dtype)
    # NumPy too counts empty dimensions as one here.
    nbytes = math.prod(extent for extent in extents if extent) * element.itemsize
    if nbytes >= 1 << 63:
        raise _too_big(shape, element, nbytes)
    if strides is None:
        steps = _weft.contiguous_strides(extents, element.itemsize, order)
    else:
        steps = _integers(strides, "strides")
        if len(steps) != len(extents):
            msg = "strides and shape differ in length"
            raise ValueError(msg)
        if any(step < 0 for step in steps):
            msg = "negative strides are not supported in a new array"
            raise NotImplementedError(msg)
    last = sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True) if extent)
    if last + element.itemsize >= 1 << 63 or any(step >= 1 << 63 for step in steps):
        raise _too_big(shape, element, last)
    memory = Memory(0 if 0 in extents else last + element.itemsize, stream)
    array = DeviceNDArray(memory, memory.address, extents, steps, element, memory.device)
    if stream:
        array.stream = stream
    return array


def _too_big(shape: Any, dtype: Any, nbytes: int) -> ValueError:
    return ValueError(f"a device array of shape {shape!r} and dtype {dtype} is too big: {nbytes} bytes")


def _integers(value: Any, name: str) -> list[int]:
    items = [value] if hasattr(value, "__index__") or not hasattr(value, "__iter__") else list(value)
    if not all(hasattr(item, "__index__") for item in items):
        msg = f"{name} must be an integer or integers, got {value!r}"
        raise TypeError(msg)
    return [item.__index__() for item in items]


def _check_order(order: str) -> None:
    if order not in ("C", "F"):
        msg = f"order must be 'C' or 'F', not {order!r}"
        raise ValueError(msg)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    """Make a device array with the shape, dtype and order of another array."""
    import numpy as np

    if isinstance(ary, (np.void, DeviceRecord)) and ary.dtype.names:
        return DeviceRecord(ary.dtype, stream)
    if not hasattr(ary, "strides"):
        ary = np.asarray(ary)
    steps = _weft.dense_strides(ary.shape, ary.strides, ary.dtype.itemsize)
    return device_array(ary.shape, ary.dtype, steps if ary.ndim else None, stream=stream or getattr(ary, "stream", 0))


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: DeviceNDArray | None = None) -> DeviceNDArray:
    """Copy to the device. What is on the device already is not copied.

    Parameters
    ----------
    obj
        A NumPy array or record, or what becomes an array; a device array; an object with
        ``__cuda_array_interface__``.
    stream
        The stream to copy in.
    copy
        Copy the elements; False only allocates.
    to
        An array to copy into, instead of a new one.
    """
    import numpy as np

    if to is not None:
        to.copy_to_device(obj if hasattr(obj, "dtype") else np.asarray(obj), stream)
        return to
    if isinstance(obj, DeviceNDArray):
        return obj
    if is_cuda_array(obj):
        return as_cuda_array(obj)
    host = np.asarray(obj)
    array = device_array_like(obj if isinstance(obj, np.void) else host, stream)
    if copy:
        write(array, host, stream)
    return array


def is_cuda_array(obj: Any) -> bool:
    """Whether an object has ``__cuda_array_interface__`` or is a device array."""
    return isinstance(obj, DeviceNDArray) or hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """Make a device array of an object with ``__cuda_array_interface__``, without a copy.

    Parameters
    ----------
    obj
        The object; the array keeps it alive.
    sync
        Wait for the stream that the object names.
    """
    if isinstance(obj, DeviceNDArray):
        return obj
    if not hasattr(obj, "__cuda_array_interface__"):
        msg = "*obj* doesn't implement the cuda array interface."
        raise TypeError(msg)
    return from_cuda_array_interface(obj.__cuda_array_interface__, owner=obj, sync=sync)


def from_cuda_array_interface(desc: dict[str, Any], owner: Any = None, sync: bool = True) -> DeviceNDArray:
    """Make a device array of a ``__cuda_array_interface__`` dictionary, without a copy."""
    from weft import config
    from weft.cuda._streams import external_stream
    from weft.errors import LaunchError

    if _weft.device_kind() == "cpu":
        msg = "the array is in GPU memory, but kernels run on the CPU"
        raise LaunchError(msg)
    address, shape, strides, dtype, readonly, producer = _weft.read_array_interface(desc)
    array = DeviceNDArray(owner, address, shape, strides, dtype, _weft.current_device_id(), readonly)
    if producer is not None:
        array.stream = external_stream(producer)
        if sync and config.CUDA_ARRAY_INTERFACE_SYNC:
            array.stream.synchronize()
    return array


def pinned_array(
    shape: int | Sequence[int], dtype: Any = None, strides: Sequence[int] | None = None, order: Order = "C"
) -> np.ndarray[Any, Any]:
    """Make a NumPy array. It is not page-locked yet: a copy from it takes as long as from any array."""
    import numpy as np

    _check_order(order)
    element = _weft.as_dtype(np.float64 if dtype is None else dtype)
    if strides is None:
        return np.empty(shape, element, "F" if order == "F" else "C")
    return np.ndarray(shape, element, strides=strides)


def pinned_array_like(ary: Any) -> np.ndarray[Any, Any]:
    """Make a NumPy array with the shape, dtype and order of another."""
    import numpy as np

    if isinstance(ary, np.ndarray) or not hasattr(ary, "strides"):
        return np.empty_like(ary)
    steps = _weft.dense_strides(ary.shape, ary.strides, ary.dtype.itemsize)
    return np.ndarray(ary.shape, ary.dtype, strides=steps)
