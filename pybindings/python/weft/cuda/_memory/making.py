"""Making device arrays: by shape, by copy, and of other libraries' memory without a copy."""

from __future__ import annotations

import math

from weft import _weft
from weft._weft import Memory
from weft.cuda._memory.device_array import DeviceNDArray, array_at, write
from weft.cuda._memory.record import DeviceRecord
from weft.cuda._memory.shapes import integers
from weft.cuda._streams import as_stream, external_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar, overload

    import numpy as np

    from weft.cuda._memory.device_array import Order

    Of = TypeVar("Of", bound=np.generic)


if TYPE_CHECKING:

    @overload
    def device_array(
        shape: int | Sequence[int], dtype: None = None, strides: int | Sequence[int] | None = None, order: Order = "C",
        stream: Any = 0,
    ) -> DeviceNDArray[np.float64]: ...  # fmt: skip
    @overload
    def device_array(
        shape: int | Sequence[int], dtype: type[Of] | np.dtype[Of], strides: int | Sequence[int] | None = None,
        order: Order = "C", stream: Any = 0,
    ) -> DeviceNDArray[Of]: ...  # fmt: skip
    @overload
    def device_array(
        shape: int | Sequence[int], dtype: Any, strides: int | Sequence[int] | None = None, order: Order = "C",
        stream: Any = 0,
    ) -> DeviceNDArray[Any]: ...  # fmt: skip


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
        Extents: an integer or a sequence of them.
    dtype
        Element type; float64 unless given.
    strides
        Strides in bytes, one for each dimension; those of ``order`` unless given.
    order
        ``"C"`` or ``"F"``.
    stream
        The stream that allocates, and that copies of the array use.

    Returns
    -------
    DeviceNDArray
        Of that shape and dtype, on the current device.

    Raises
    ------
    TypeError
        A dimension is not an integer, or the dtype is not supported.
    ValueError
        A dimension is negative, or the order is not ``"C"`` or ``"F"``.
    DeviceMemoryError
        The device has no memory left.

    Examples
    --------
    >>> out = cuda.device_array((480, 640), np.float32)
    >>> out.shape, out.nbytes
    ((480, 640), 1228800)
    """
    if strides is None and order == "C" and not stream:
        plain: DeviceNDArray | None = _weft.new_array(DeviceNDArray, shape, dtype)
        if plain is not None:
            return plain
    extents, element, steps, nbytes = layout_of(shape, dtype, strides, order)
    memory = Memory(nbytes, stream)
    array = array_at(memory, memory.address, extents, steps, element, memory.device)
    if stream:
        array.stream = as_stream(stream)
    return array


def layout_of(shape: Any, dtype: Any, strides: Any, order: str) -> tuple[list[int], np.dtype[Any], list[int], int]:
    """Give the extents, the dtype, the strides and the size in bytes of a new array."""
    import numpy as np

    extents = _extents(shape)
    _check_order(order)
    element = _weft.as_dtype(np.float64 if dtype is None else dtype)
    # NumPy also counts empty dimensions as one here.
    nbytes = math.prod(extent for extent in extents if extent) * element.itemsize
    if nbytes >= 1 << 63:
        raise _too_big(shape, element, nbytes)
    if strides is None:
        steps = _weft.contiguous_strides(extents, element.itemsize, order)
    else:
        steps = _steps(strides, extents)
        if any(step < 0 for step in steps):
            msg = f"a new array has no negative strides ({strides=}): make it without, and take a view such as x[::-1]"
            raise NotImplementedError(msg)
    last = sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True) if extent)
    if last + element.itemsize >= 1 << 63 or any(step >= 1 << 63 for step in steps):
        raise _too_big(shape, element, last)
    return extents, element, steps, 0 if 0 in extents else last + element.itemsize


def storage_of_layout(
    shape: Any, strides: Any, dtype: Any, stream: Any, gpu_data: Any
) -> tuple[Any, int, list[int], list[int], np.dtype[Any], int, bool]:
    """Give what `array_at` takes of an array in new memory, or in `gpu_data`: see `DeviceNDArray`."""
    if gpu_data is None:
        extents, element, steps, nbytes = layout_of(shape, dtype, strides, "C")
        memory = Memory(nbytes, stream)
        return memory, memory.address, extents, steps, element, memory.device, False
    from weft.cuda._memory.transfers import device_memory_size, is_device_memory, on_device, storage_of

    if not is_device_memory(gpu_data):
        msg = f"`gpu_data` must be device memory, such as the `gpu_data` of an array, not {type(gpu_data).__name__}"
        raise TypeError(msg)
    extents = _extents(shape)
    steps = _steps(strides, extents)
    element = _weft.as_dtype(dtype)
    memory = on_device(gpu_data)
    low, high = _span(extents, steps, element.itemsize)
    if high - low > device_memory_size(memory):
        msg = (
            f"an array of shape {tuple(extents)}, strides {tuple(steps)} and dtype {element} spans {high - low} bytes, "
            f"and `gpu_data` has {device_memory_size(memory)}"
        )
        raise ValueError(msg)
    owner, address, device = storage_of(memory)
    readonly: bool = getattr(memory, "readonly", False)
    return owner, address - low, extents, steps, element, device, readonly


def _extents(shape: Any) -> list[int]:
    extents = _integers(shape, "shape")
    if any(extent < 0 for extent in extents):
        msg = f"the dimensions of an array cannot be negative, got shape {shape!r}"
        raise ValueError(msg)
    return extents


def _steps(strides: Any, extents: Sequence[int]) -> list[int]:
    steps = _integers(strides, "strides")
    if len(steps) != len(extents):
        msg = "strides and shape differ in length"
        raise ValueError(msg)
    return steps


def _span(extents: Sequence[int], steps: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Give the bytes that elements lie in, relative to the first element: start and end."""
    if 0 in extents:
        return 0, 0
    last = [(extent - 1) * step for extent, step in zip(extents, steps, strict=True)]
    return sum(step for step in last if step < 0), sum(step for step in last if step > 0) + itemsize


def _too_big(shape: Any, dtype: Any, nbytes: int) -> ValueError:
    return ValueError(f"a device array of shape {shape!r} and dtype {dtype} is too large: {nbytes} bytes")


def _integers(value: Any, name: str) -> list[int]:
    found = integers(value)
    if found is None:
        msg = f"{name} must be an integer or integers, got {value!r}"
        raise TypeError(msg)
    return found


def _check_order(order: str) -> None:
    if order not in ("C", "F"):
        msg = f"order must be 'C' or 'F', not {order!r}"
        raise ValueError(msg)


if TYPE_CHECKING:

    @overload
    def device_array_like(
        ary: DeviceNDArray[Of] | np.ndarray[Any, np.dtype[Of]], stream: Any = 0
    ) -> DeviceNDArray[Of]: ...
    @overload
    def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray[Any]: ...


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    """Make a device array with the shape, dtype and order of another array.

    Parameters
    ----------
    ary
        A NumPy array, a device array, a record, or an object that converts to an array.
    stream
        The stream that allocates, and that copies of the array use; that of ``ary`` unless given.

    Returns
    -------
    DeviceNDArray or DeviceRecord
        With the shape, dtype and order of ``ary``, without gaps.

    Raises
    ------
    TypeError
        No kernel can have the dtype.
    DeviceMemoryError
        The device has no memory left.

    Examples
    --------
    >>> x = cuda.to_device(np.ones((3, 4), np.float32))
    >>> out = cuda.device_array_like(x)
    >>> out.shape, out.dtype
    ((3, 4), dtype('float32'))
    """
    import numpy as np

    if isinstance(ary, (np.void, DeviceRecord)) and ary.dtype.names:
        return DeviceRecord(ary.dtype, stream)
    if not hasattr(ary, "strides"):
        ary = np.asarray(ary)
    steps = _weft.dense_strides(ary.shape, ary.strides, ary.dtype.itemsize)
    return device_array(ary.shape, ary.dtype, steps if ary.ndim else None, stream=stream or getattr(ary, "stream", 0))


if TYPE_CHECKING:

    @overload
    def to_device(
        obj: DeviceNDArray[Of] | np.ndarray[Any, np.dtype[Of]], stream: Any = 0, copy: bool = True,
        to: DeviceNDArray[Of] | None = None,
    ) -> DeviceNDArray[Of]: ...  # fmt: skip
    @overload
    def to_device(
        obj: Any, stream: Any = 0, copy: bool = True, to: DeviceNDArray[Any] | None = None
    ) -> DeviceNDArray[Any]: ...


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: DeviceNDArray | None = None) -> DeviceNDArray:
    """Copy to the device. Data on the device is not copied.

    Parameters
    ----------
    obj
        A NumPy array or record, or what becomes an array; a device array; an object with
        ``__cuda_array_interface__`` or ``__dlpack__``.
    stream
        The stream to copy in.
    copy
        Copy the elements; False only allocates.
    to
        An array to copy into, instead of a new one.

    Returns
    -------
    DeviceNDArray or DeviceRecord
        With the shape, dtype and order of ``obj``; ``to`` if that was given, and ``obj`` if it is on the device.

    Raises
    ------
    RuntimeError
        A graph is recorded (`cuda.graph`), and there is no ``to``.
    TypeError
        A graph is recorded, and ``obj`` is no array, of which each launch could copy what is in it then; or no kernel
        can have its dtype.
    ValueError
        ``to`` has another shape.
    DeviceMemoryError
        The device has no memory left.

    Examples
    --------
    >>> d = cuda.to_device(np.arange(4))
    >>> d.copy_to_host()
    array([0, 1, 2, 3])
    """
    import numpy as np

    from weft.cuda._memory.interchange import array_of, exports

    if not is_cuda_array(obj) and exports(obj):
        obj = array_of(obj, stream)
    if to is not None:
        if not hasattr(obj, "dtype") and _weft.is_recording():
            msg = (
                f"`obj` must be an array while a graph is recorded, not {type(obj).__name__}: each launch of the graph "
                "copies what is in it then"
            )
            raise TypeError(msg)
        if not isinstance(to, DeviceNDArray):
            msg = f"`to` must be a device array to copy into, not {type(to).__name__}: `cuda.device_array` makes one"
            raise TypeError(msg)
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


def auto_device(
    obj: Any, stream: Any = 0, copy: bool = True, user_explicit: bool = False
) -> tuple[DeviceNDArray, bool]:
    """Give a device array of an object, as `to_device` does, and whether it is a new one.

    Parameters
    ----------
    obj, stream, copy
        As in `to_device`.
    user_explicit
        Do not warn of the copy.
    """
    if is_cuda_array(obj):
        return to_device(obj), False
    if copy and not user_explicit and _weft.device_kind() == "cuda":
        from weft import config
        from weft.errors import PerformanceWarning

        if config.CUDA_WARN_ON_IMPLICIT_COPY:
            import warnings

            msg = "Host array used in CUDA kernel will incur copy overhead to/from device."
            warnings.warn(msg, PerformanceWarning, stacklevel=2)
    return to_device(obj, stream, copy), True


def is_cuda_array(obj: Any) -> bool:
    """Whether an object has ``__cuda_array_interface__`` or is a device array.

    Parameters
    ----------
    obj
        Anything.

    Returns
    -------
    bool
        Of NumPy's arrays it is False, also where kernels run on the CPU.

    Examples
    --------
    >>> cuda.is_cuda_array(cuda.to_device(np.ones(3))), cuda.is_cuda_array(np.ones(3))
    (True, False)
    """
    return isinstance(obj, DeviceNDArray) or hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """Make a device array of an object with ``__cuda_array_interface__`` or ``__dlpack__``, without a copy.

    Parameters
    ----------
    obj
        The object; the array keeps it, or its memory. NumPy's arrays are not on the device, wherever kernels run.
    sync
        Wait for the stream that the object names.

    Returns
    -------
    DeviceNDArray
        Over the same memory, with the shape, dtype and strides of the object; ``obj`` if it is one.

    Raises
    ------
    TypeError
        The object has neither, or no kernel can have its dtype.
    LaunchError
        The memory is a GPU's, and kernels run on the CPU.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> x = cuda.as_cuda_array(cupy.ones(1000))  # doctest: +SKIP
    >>> scale[4, 256](x, 2.0)  # what CuPy's array has is doubled  # doctest: +SKIP
    """
    from weft.cuda._memory.interchange import as_device_array, exports

    if isinstance(obj, DeviceNDArray):
        return obj
    if not hasattr(obj, "__cuda_array_interface__"):
        if exports(obj):
            return as_device_array(obj, sync)
        msg = (
            "*obj* doesn't implement the cuda array interface. "
            f"copy host data, such as a NumPy array, with `cuda.to_device(obj)`; obj is "
            f"{type(obj).__name__}"
        )
        raise TypeError(msg)
    return from_cuda_array_interface(obj.__cuda_array_interface__, owner=obj, sync=sync)


def from_cuda_array_interface(desc: dict[str, Any], owner: Any = None, sync: bool = True) -> DeviceNDArray:
    """Make a device array of a ``__cuda_array_interface__`` dictionary, without a copy.

    Parameters
    ----------
    desc
        The dictionary: ``shape``, ``typestr``, ``data``, and ``strides`` in bytes.
    owner
        The owner of the memory, which the array keeps alive.
    sync
        Wait for the stream that the dictionary names.

    Returns
    -------
    DeviceNDArray
        Over the same memory.

    Raises
    ------
    LaunchError
        Kernels run on the CPU, which does not reach the memory.
    ValueError
        An entry is missing or wrong.
    TypeError
        No kernel can have the dtype.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> theirs = cupy.ones(1000)  # doctest: +SKIP
    >>> x = cuda.from_cuda_array_interface(theirs.__cuda_array_interface__, owner=theirs)  # doctest: +SKIP
    """
    from weft import config
    from weft.errors import LaunchError

    if not _weft.shares_arrays():
        msg = "the array is in GPU memory, but kernels run on the CPU"
        raise LaunchError(msg)
    address, shape, strides, dtype, readonly, producer = _weft.read_array_interface(desc, owner)
    array = array_at(owner, address, shape, strides, dtype, _weft.device_of_address(address), readonly)
    if producer is not None:
        array.stream = external_stream(producer)
        if sync and config.CUDA_ARRAY_INTERFACE_SYNC:
            array.stream.synchronize()
    return array
