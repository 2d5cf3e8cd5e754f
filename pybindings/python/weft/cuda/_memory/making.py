"""Making device arrays: by shape, by copy, and of other libraries' memory without a copy."""

from __future__ import annotations

import contextlib
import math

from weft import _weft
from weft._weft import Memory
from weft.cuda._memory.device_array import DeviceNDArray, DeviceRecord, write
from weft.cuda._streams import as_stream, external_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy as np

    from weft._weft import HostMemory
    from weft.cuda._memory.device_array import Order
    from weft.cuda._memory.mapped import Lent, ManagedNDArray, MappedNDArray


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

    Raises
    ------
    TypeError
        An extent is no integer, or no kernel can have the dtype.
    ValueError
        An extent is negative, or the order is neither.
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
    extents, element, steps, nbytes = _layout(shape, dtype, strides, order)
    memory = Memory(nbytes, stream)
    array = DeviceNDArray(memory, memory.address, extents, steps, element, memory.device)
    if stream:
        array.stream = as_stream(stream)
    return array


def _layout(shape: Any, dtype: Any, strides: Any, order: str) -> tuple[list[int], np.dtype[Any], list[int], int]:
    """Give the extents, the dtype, the strides and the size in bytes of a new array."""
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
    return extents, element, steps, 0 if 0 in extents else last + element.itemsize


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
        ``__cuda_array_interface__`` or ``__dlpack__``.
    stream
        The stream to copy in.
    copy
        Copy the elements; False only allocates.
    to
        An array to copy into, instead of a new one.

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
    """Whether an object has ``__cuda_array_interface__`` or is a device array."""
    return isinstance(obj, DeviceNDArray) or hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """Make a device array of an object with ``__cuda_array_interface__`` or ``__dlpack__``, without a copy.

    Parameters
    ----------
    obj
        The object; the array keeps it, or its memory. NumPy's arrays are not on the device, wherever kernels run.
    sync
        Wait for the stream that the object names.
    """
    from weft.cuda._memory.interchange import as_device_array, exports

    if isinstance(obj, DeviceNDArray):
        return obj
    if not hasattr(obj, "__cuda_array_interface__"):
        if exports(obj):
            return as_device_array(obj, sync)
        msg = (
            "*obj* doesn't implement the cuda array interface. "
            f"`cuda.to_device(obj)` copies what the host has, such as an array of NumPy's, to the device; it is "
            f"{type(obj).__name__}"
        )
        raise TypeError(msg)
    return from_cuda_array_interface(obj.__cuda_array_interface__, owner=obj, sync=sync)


def from_cuda_array_interface(desc: dict[str, Any], owner: Any = None, sync: bool = True) -> DeviceNDArray:
    """Make a device array of a ``__cuda_array_interface__`` dictionary, without a copy."""
    from weft import config
    from weft.errors import LaunchError

    if not _weft.shares_arrays():
        msg = "the array is in GPU memory, but kernels run on the CPU"
        raise LaunchError(msg)
    address, shape, strides, dtype, readonly, producer = _weft.read_array_interface(desc, owner)
    array = DeviceNDArray(owner, address, shape, strides, dtype, _weft.device_of_address(address), readonly)
    if producer is not None:
        array.stream = external_stream(producer)
        if sync and config.CUDA_ARRAY_INTERFACE_SYNC:
            array.stream.synchronize()
    return array


def pinned_array(
    shape: int | Sequence[int], dtype: Any = None, strides: Sequence[int] | None = None, order: Order = "C"
) -> np.ndarray[Any, Any]:
    """Make a NumPy array in page-locked memory, which a GPU copies from and to without a detour.

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

    Raises
    ------
    MemoryError
        There is no such memory left.
    """
    import numpy as np

    made: np.ndarray[Any, Any] = _shared(np.ndarray, shape, dtype, strides, order)
    return made


def pinned_array_like(ary: Any) -> np.ndarray[Any, Any]:
    """Make a page-locked NumPy array with the shape, dtype and order of another."""
    shape, dtype, strides = _like(ary)
    return pinned_array(shape, dtype, strides)


def mapped_array(
    shape: int | Sequence[int],
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    order: Order = "C",
    stream: Any = 0,
    portable: bool = False,  # noqa: ARG001
    wc: bool = False,  # noqa: ARG001
) -> MappedNDArray:
    """Make a NumPy array in memory of the host that kernels read and write there, without a copy.

    Kernels that run write it at any time: wait for them before looking at it.

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
        The stream that copies of the array use.
    portable
        Has no effect: it always is.
    wc
        Has no effect: the host can read the memory, too.
    """
    from weft.cuda._memory.mapped import MappedNDArray

    made: MappedNDArray = _shared(MappedNDArray, shape, dtype, strides, order, stream)
    return made


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> MappedNDArray:
    """Make a `mapped_array` with the shape, dtype and order of another."""
    shape, dtype, strides = _like(ary)
    return mapped_array(shape, dtype, strides, stream=stream, portable=portable, wc=wc)


def managed_array(
    shape: int | Sequence[int],
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    order: Order = "C",
    stream: Any = 0,
    attach_global: bool = True,
) -> ManagedNDArray:
    """Make a NumPy array in memory that moves to where it is used, host or device.

    The same as `mapped_array` but for that; ``attach_global=False`` says that the host uses it first.
    """
    from weft.cuda._memory.mapped import ManagedNDArray

    options = {"managed": True, "attach_global": attach_global}
    made: ManagedNDArray = _shared(ManagedNDArray, shape, dtype, strides, order, stream, **options)
    return made


def _like(ary: Any) -> tuple[Any, Any, Any]:
    """Give shape, dtype and strides of an array without gaps that is like another."""
    import numpy as np

    if not hasattr(ary, "strides"):
        ary = np.asarray(ary)
    return ary.shape, ary.dtype, _weft.dense_strides(ary.shape, ary.strides, ary.dtype.itemsize)


def _shared(of: Any, shape: Any, dtype: Any, strides: Any, order: str, stream: Any = 0, **options: bool) -> Any:
    """Make an array of a class of NumPy's in memory that host and device share."""
    import numpy as np

    from weft.cuda._memory.mapped import Block, allocate

    extents, element, steps, nbytes = _layout(shape, dtype, strides, order)
    if element.hasobject:
        msg = f"memory that host and device share cannot have elements of dtype {element}, which are Python objects"
        raise TypeError(msg)
    memory = allocate(nbytes, mapped=of is not np.ndarray, **options)
    # NumPy's arrays keep what their memory is of.
    array = np.ndarray.__new__(of, extents, element, np.asarray(Block(memory)), strides=steps)
    if of is not np.ndarray:
        array._memory = memory
        array.stream = as_stream(stream)
    return array


@contextlib.contextmanager
def pinned(*arylist: np.ndarray[Any, Any]) -> Iterator[None]:
    """Lock the pages of NumPy arrays while a block runs."""
    locked = [_lock(array, mapped=False) for array in arylist]
    try:
        yield
    finally:
        locked.clear()


@contextlib.contextmanager
def mapped(*arylist: np.ndarray[Any, Any], stream: Any = 0) -> Iterator[DeviceNDArray | list[DeviceNDArray]]:
    """Make device arrays of NumPy arrays, for kernels that use them where they are, while a block runs.

    Gives one device array for one array, and a list for several. They are of no use after the block.
    """
    made = []
    owners: list[list[Any]] = []
    for array in arylist:
        memory = _lock(array, mapped=True)
        # The names that the block gave stay behind it: the memory is let go by its owner.
        owners.append([memory, array])
        device = DeviceNDArray(
            owners[-1], memory.device_address, array.shape, array.strides, array.dtype, memory.device,
            not array.flags.writeable,
        )  # fmt: skip
        if stream:
            device.stream = as_stream(stream)
        made.append(device)
        del memory
    try:
        yield made[0] if len(made) == 1 else made
    finally:
        _weft.synchronize()
        for owner in owners:
            del owner[0]


def _lock(array: np.ndarray[Any, Any], *, mapped: bool) -> HostMemory | Lent:
    from weft.cuda._memory.mapped import lock

    if not hasattr(array, "flags"):
        msg = f"an array of NumPy's can be page-locked, not {type(array).__name__}: make it with `np.asarray`"
        raise TypeError(msg)
    if not array.flags.forc:
        msg = "only an array in one piece can be page-locked"
        raise ValueError(msg)
    return lock(array, mapped=mapped)
