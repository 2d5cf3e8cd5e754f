"""Device arrays: NumPy's shape of things in the memory of a device.

An array describes memory: an address, a shape and strides in bytes. Views share the memory with the array that they
were made from and keep it alive. An operation that returns a view in numba raises an error if a view is not possible;
it never copies silently. Computations, and indices with arrays, return new arrays (`operators.py`, `shapes.py`,
`indices.py`).
"""

from __future__ import annotations

import functools

from weft import _weft
from weft.cuda._memory import observed
from weft.cuda._memory.generic import Element
from weft.cuda._memory.operators import Operators
from weft.cuda._memory.shapes import Shapes
from weft.cuda._streams import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from weft.cuda._memory.flags import ArrayFlags
    from weft.cuda._memory.ipc import IpcArrayHandle
    from weft.cuda._memory.record import DeviceRecord

    Order = Literal["C", "F", "A"]


# A strided array is copied to the host with its gaps up to this size, or up to twice the size of its elements.
_GAPS = 1 << 16


class DeviceNDArray(Shapes[Element], Operators[Element], _weft.DeviceArrayBase):
    """An array in device memory. Make one with `cuda.to_device` or `cuda.device_array`.

    >>> assert (cuda.to_device(np.arange(3)) * 2).copy_to_host().tolist() == [0, 2, 4]
    """

    # The default stream of copies.
    stream: Any = 0

    def __new__(
        cls, shape: int | Sequence[int], strides: int | Sequence[int], dtype: Any, stream: Any = 0, gpu_data: Any = None
    ) -> Self:
        """Make an array of the layout that is given, in new memory or in memory that there is.

        Parameters
        ----------
        shape
            Extents: an integer or a sequence of them.
        strides
            Strides in bytes, one for each dimension.
        dtype
            Element type.
        stream
            The stream that allocates, and that copies of the array use.
        gpu_data
            The memory, which the array keeps: a `MemoryPointer`, such as an array's `gpu_data`, or a device array. Its
            first byte is the lowest of the elements'. None for new memory, with undefined contents.

        Raises
        ------
        TypeError
            An extent or a stride is no integer, no kernel can have the dtype, or ``gpu_data`` is no device memory.
        ValueError
            An extent is negative, there is not one stride for each dimension, or the elements do not fit into
            ``gpu_data``.
        """
        from weft.cuda._memory.making import storage_of_layout

        array = _weft.DeviceArrayBase.__new__(cls, *storage_of_layout(shape, strides, dtype, stream, gpu_data))
        if stream:
            array.stream = as_stream(stream)
        return array

    # --- Attributes ---

    @property
    def alloc_size(self) -> int:
        """Bytes from the first to the end of the last element."""
        low, high = self.span
        return high - low

    @property
    def gpu_data(self) -> Any:
        """The memory that it is in, as a `MemoryPointer`."""
        from weft.cuda._memory.pointers import of_array

        return of_array(self)

    def get_ipc_handle(self) -> IpcArrayHandle:
        """Give a handle with which another process of this machine opens the array; it can be pickled.

        Raises
        ------
        DriverError
            No other process can open the memory (code 801): arrays are in the driver's pool unless WEFT_MEMORY_POOL=0.
            Memory of the CPU has a handle, but opening that is this error.
        """
        from weft.cuda._memory.ipc import handle_of_array

        return handle_of_array(self)

    @property
    def device_pointer(self) -> int:
        """The address of the first element."""
        return self.address

    @property
    def device_ctypes_pointer(self) -> Any:
        """The address as a ``ctypes.c_void_p``."""
        import ctypes

        return ctypes.c_void_p(self.address)

    @property
    def flags(self) -> ArrayFlags:
        """``C_CONTIGUOUS`` and ``F_CONTIGUOUS``; NumPy's other names of flags by ``flags["C"]`` or ``flags.forc``."""
        from weft.cuda._memory.flags import ArrayFlags

        return ArrayFlags(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other libraries, without a copy. On the CPU it is there if no driver of CUDA's is."""
        if not _weft.shares_arrays():
            msg = "the array is in CPU memory"
            raise AttributeError(msg)
        stream = int(as_stream(self.stream)) or None
        descr = {}
        if self.dtype.names is not None:
            import contextlib

            # Fields that overlap or are in another order have none.
            with contextlib.suppress(ValueError):
                descr["descr"] = self.dtype.descr
        return {
            "version": 3,
            "shape": self.shape,
            "strides": None if self.is_c_contiguous() else self.strides,
            "typestr": self.dtype.str,
            **descr,
            "data": (self.address if self.size else 0, self.readonly),
            "stream": stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type of the device, and its number: on the CPU, memory of the host."""
        from weft.cuda._memory.interchange import device_of

        return device_of(self)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the array as a DLPack capsule, without a copy unless one is requested.

        Parameters
        ----------
        stream
            The handle of the consumer's stream, which waits for the work in the array's own; 1 or None for the legacy
            default stream, 2 for the calling thread's, -1 to wait for nothing. On the CPU None.
        max_version
            The version that the consumer reads: from ``(1, 0)`` on the capsule has a version, and marks read-only
            arrays.
        dl_device
            Where the memory is to be: the array's own device, or ``(1, 0)``, the host.
        copy
            Copy the elements; False is an error where that must be.

        Raises
        ------
        BufferError
            DLPack cannot describe the array: its elements are not numbers, or its strides are not multiples of the
            element size; or it is read-only, and the consumer does not support that.
        ValueError
            ``stream`` is none.
        """
        from weft.cuda._memory.interchange import to_dlpack

        return to_dlpack(self, stream, max_version, dl_device, copy)

    def __len__(self) -> int:
        if not self.ndim:
            msg = "len() of a device array of 0 dimensions"
            raise TypeError(msg)
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<weft.cuda.DeviceNDArray shape={self.shape} dtype={self.dtype} device={self.device}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from weft.cuda._memory.making import to_device

        return to_device, (self.copy_to_host(),)

    # --- Copies ---

    def copy_to_host(self, ary: np.ndarray[Any, Any] | None = None, stream: Any = 0) -> NDArray[Element]:
        """Copy to the host.

        Parameters
        ----------
        ary
            The array to copy into: the same dtype, and the same shape, without counting axes of one element, or one to
            which this array's broadcasts. A new one if None, with this array's order.
        stream
            The stream to copy in; the call waits for it.

        Raises
        ------
        TypeError
            ``ary`` is not a NumPy array, or has another dtype.
        ValueError
            Its shape does not match, or it is read-only; or a graph is recorded, and its elements are in another order.
        RuntimeError
            There is no ``ary``, and a graph is recorded: see `cuda.graph`.
        """
        import numpy as np

        if ary is None:
            if _weft.is_recording():
                msg = "`ary` is missing: while a graph is recorded, write `array.copy_to_host(out)`"
                raise RuntimeError(msg)
            return read(self, stream)
        if not isinstance(ary, np.ndarray):
            msg = f"`ary`, the array to copy into, must be a NumPy array, not {type(ary).__name__}"
            raise TypeError(msg)
        self._check_like(ary, self.shape, ary.shape)
        if not ary.flags.writeable:
            msg = "`ary`, the array to copy into, is read-only"
            raise ValueError(msg)
        if _weft.is_recording():
            from weft.cuda._memory.recorded import record_to_host

            record_to_host(self, ary, stream)
            return ary
        to = ary.reshape(self.shape) if squeezed(ary.shape) == squeezed(self.shape) else ary
        if to.shape == self.shape and (
            (self.is_c_contiguous() and to.flags.c_contiguous) or (self.is_f_contiguous() and to.flags.f_contiguous)
        ):
            _weft.copy_to_host(self.device, self.address, _bytes_of(to), stream or self.stream)
        else:
            np.copyto(to, read(self, stream))
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy a host or device array into this array.

        Parameters
        ----------
        ary
            An array of the same dtype, and of the same shape, without counting axes of one element, or of one that
            broadcasts to this array's.
        stream
            The stream to copy in.

        Raises
        ------
        TypeError
            ``ary`` is not an array, or has another dtype.
        ValueError
            Its shape does not match; or a graph is recorded, and its elements are in another order.
        """
        import numpy as np

        if not isinstance(ary, (DeviceNDArray, np.ndarray)):
            if not hasattr(ary, "__cuda_array_interface__"):
                msg = f"`ary`, the array to copy, must be an array, not {type(ary).__name__}"
                raise TypeError(msg)
            from weft.cuda._memory.making import as_cuda_array

            ary = as_cuda_array(ary)
        self._check_like(ary, ary.shape, self.shape)
        if isinstance(ary, np.ndarray) and _weft.is_recording():
            from weft.cuda._memory.recorded import record_to_device

            record_to_device(self, ary, stream)
            return
        if ary.shape == self.shape:
            write(self, ary, stream)
            return
        from weft.cuda._memory import copies

        if squeezed(ary.shape) == squeezed(self.shape):
            ary = ary.squeeze().reshape(squeezed(self.shape))
        copies.assign(self, ary, stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Copy to the host for NumPy."""
        if copy is False:
            msg = "a device array cannot become a NumPy array without a copy"
            raise ValueError(msg)
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def _check_like(self, other: Any, of: tuple[int, ...], to: tuple[int, ...]) -> None:
        """Check another array's dtype, and whether one of the two shapes becomes the other."""
        if other.dtype != self.dtype:
            msg = f"incompatible dtype: {other.dtype} vs. {self.dtype}"
            raise TypeError(msg)
        more = len(to) - len(of)
        spreads = more >= 0 and all(own in (1, extent) for own, extent in zip(of, to[more:], strict=True))
        if not spreads and squeezed(of) != squeezed(to):
            msg = f"incompatible shape: {other.shape} vs. {self.shape}"
            raise ValueError(msg)

    # --- Elements and views ---

    def __getitem__(self, key: Any) -> Any:
        return self.getitem(key)

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Copy an element to the host; or make a view: of a part, of a field by its name, of a record; or a new array.

        Parameters
        ----------
        item
            Integers, slices, ``...`` and None make a view. With an array among them, of NumPy or on the device, of
            integers or booleans, or a list of those, the result is a new array on the device, in C order, of the shape
            that NumPy gives it. Where such an array is on the device, the call waits for the check of its indices, and
            for how many elements of a mask are true.
        stream
            The stream to copy in.

        Raises
        ------
        IndexError
            An index is out of bounds, there are more of them than dimensions, or arrays do not fit.
        """
        if has_array(item):
            from weft.cuda._memory import indices

            return indices.read(self, item, stream)
        view = self._index(item)
        if view.ndim or _has_slice(item) or isinstance(item, str):
            return view
        if self.dtype.names:
            return self._record(view.address, self.dtype)
        return read(view, stream)[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.setitem(key, value)

    def __delitem__(self, key: Any) -> None:
        msg = "elements of a device array cannot be deleted: its size is fixed"
        raise TypeError(msg)

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Write an element or a part of the array; the value is broadcast, and converted, as in NumPy.

        Device arrays are converted and copied on the device, and may overlap what they are assigned to. Where arrays of
        indices name an element several times, it gets one of the values.

        Parameters
        ----------
        key
            What `getitem` takes.
        value
            A number, a NumPy array or what becomes one, or a device array.
        stream
            The stream to copy in.

        Raises
        ------
        IndexError
            As in `getitem`.
        ValueError
            The value does not broadcast to the part, or the array is read-only.
        """
        from weft.cuda._memory import copies, indices

        if has_array(key):
            indices.assign(self, key, value, stream)
        else:
            copies.assign(self._index(key), value, stream)

    def _field(self, name: str) -> tuple[np.dtype[Any], int]:
        """Give a field's dtype and its offset."""
        fields = self.dtype.fields
        if fields is None or name not in fields:
            msg = f"no field named {name}"
            raise ValueError(msg)
        return fields[name][0], fields[name][1]

    def _field_view(self, name: str) -> DeviceNDArray:
        """Make a view of a field of each record; an array in it is dimensions of the view."""
        dtype, offset = self._field(name)
        inner = _weft.contiguous_strides(dtype.shape, dtype.base.itemsize, "C")
        shape, strides = [*self.shape, *dtype.shape], [*self.strides, *inner]
        return self._view(self.address + offset, shape, strides, dtype.base)

    def _record(self, address: int, dtype: Any) -> DeviceRecord:
        from weft.cuda._memory.record import DeviceRecord

        record = DeviceRecord.at(self.owner, address, dtype, self.device, readonly=self.readonly)
        if self.stream:
            record.stream = self.stream
        return record

    def _index(self, key: Any) -> DeviceNDArray:
        if isinstance(key, str) and self.dtype.names:
            return self._field_view(key)
        items = self.without_ellipsis(list(key) if isinstance(key, tuple) else [key])
        address, axis, shape, strides = self.address, 0, [], []
        for item in items:
            if item is None:
                shape.append(1)
                strides.append(0)
                continue
            if isinstance(item, slice):
                start, count, step = self.sliced(item, axis)
                address += start
                shape.append(count)
                strides.append(step)
            else:
                address += self.whole_index(item, axis) * self.strides[axis]
            axis += 1
        return self._view(address, shape, strides)

    def without_ellipsis(self, items: list[Any]) -> list[Any]:
        """Give the parts of a key with slices for ``...`` and for the axes that it does not name."""
        taken = [0 if item is None or item is Ellipsis else _axes_of(item) for item in items]
        rest = self.ndim - sum(taken)
        if rest < 0:
            msg = f"too many indices: the array has {self.ndim} dimensions, but {sum(taken)} were given"
            raise IndexError(msg)
        places = [at for at, item in enumerate(items) if item is Ellipsis]
        if len(places) > 1:
            msg = "an index can only have a single ellipsis"
            raise IndexError(msg)
        place = places[0] if places else len(items)
        return [*items[:place], *[slice(None)] * rest, *items[place + 1 :]]

    def sliced(self, item: slice, axis: int) -> tuple[int, int, int]:
        """Give where a slice of an axis starts, in bytes from the axis's start, its extent, and its stride."""
        extent, stride = self.shape[axis], self.strides[axis]
        start, stop, step = item.indices(extent)
        count = len(range(start, stop, step))
        # A stride beyond 63 bits occurs only with a single element, where it is unused.
        return start * stride if count else 0, count, stride * step if abs(stride * step) < 1 << 63 else stride

    def whole_index(self, item: Any, axis: int) -> int:
        """Give an integer of a key, counted from the axis's start."""
        if isinstance(item, bool) or not hasattr(item, "__index__"):
            msg = (
                "an index of a device array must be made of integers, slices, ..., None, and arrays of integers or "
                f"booleans, not {type(item).__name__}"
            )
            raise TypeError(msg)
        index: int = item.__index__()
        extent = self.shape[axis]
        if not -extent <= index < extent:
            msg = f"index {index} is out of bounds for axis {axis} with size {extent}"
            raise IndexError(msg)
        return index + extent if index < 0 else index

    def _view(self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any = None) -> DeviceNDArray:
        dtype = self.dtype if dtype is None else dtype
        view = array_at(self.owner, address, shape, strides, dtype, self.device, self.readonly)
        if self.stream:
            view.stream = self.stream
        return view

    def bind(self, stream: Any = 0) -> DeviceNDArray[Element]:
        """Make the same array with a stream of its own for copies."""
        clone = self._view(self.address, self.shape, self.strides)
        clone.stream = stream
        return clone


if TYPE_CHECKING:

    def array_at(
        owner: Any, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any, device: int,
        readonly: bool = False,
    ) -> DeviceNDArray[Any]:  # fmt: skip
        """Make an array in memory that an owner keeps: what arrays, views and memory of other libraries are made by."""
        ...
else:
    # Bypass the slower `DeviceNDArray.__new__`, which takes numba's arguments: views are created often.
    array_at = functools.partial(_weft.DeviceArrayBase.__new__, DeviceNDArray)


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give the extents without those of axes of one element."""
    return tuple(extent for extent in shape if extent != 1)


def is_array_index(item: Any) -> bool:
    """Whether a part of a key is an array, or becomes one, and has dimensions."""
    return isinstance(item, (list, tuple)) or bool(getattr(item, "ndim", 0))


def has_array(key: Any) -> bool:
    """Whether a key selects by arrays, and so makes no view."""
    if isinstance(key, tuple):
        return any(is_array_index(item) for item in key)
    return not isinstance(key, (int, slice, str)) and is_array_index(key)


def _axes_of(item: Any) -> int:
    """Of how many axes of an array a part of a key is the index."""
    dtype = getattr(item, "dtype", None)
    return int(item.ndim) if dtype is not None and dtype.kind == "b" and item.ndim else 1


def _has_slice(item: Any) -> bool:
    items = item if isinstance(item, tuple) else (item,)
    return any(part is Ellipsis or isinstance(part, slice) for part in items)


def _bytes_of(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One dimension of bytes of a contiguous array, without a copy."""
    return host.reshape(-1, order="A").view("u1")


def read(array: DeviceNDArray, stream: Any) -> np.ndarray[Any, Any]:
    """Copy an array to a new one of the host, of the same order."""
    import numpy as np

    contiguous = array.is_c_contiguous() or array.is_f_contiguous()
    low, high = array.span
    if not contiguous and high - low > max(2 * array.nbytes, _GAPS):
        from weft.cuda._memory import copies
        from weft.cuda._memory.ordering import ordered

        # Do not copy the elements in the gaps: a column must not copy its matrix.
        with ordered([array], stream) as chosen:
            array = copies.compact(array, "K", chosen)
        low, high, contiguous = 0, array.nbytes, True
        stream = chosen
    memory = np.empty(high - low, np.uint8)
    _weft.copy_to_host(array.device, array.address + low, memory, stream or array.stream)
    host = np.ndarray(array.shape, array.dtype, memory.data, -low, array.strides)
    # Copy a strided view out of the larger buffer, in NumPy's order.
    return host if contiguous else host.copy(order="K")


def write(array: DeviceNDArray, value: Any, stream: Any) -> None:
    """Copy a host or device array of the same shape and dtype into an array."""
    if not array.size:
        return
    stream = stream or array.stream
    if isinstance(value, DeviceNDArray):
        if value.device == array.device:
            from weft.cuda._memory import copies
            from weft.cuda._memory.ordering import ordered

            with ordered([array, value], stream) as chosen:
                copies.move(value, array, chosen)
            return
        with observed.writing(array, observed.UNSEEN, "a copy between devices", stream):
            _write_host(array, read(value, 0), stream)
        return
    with observed.writing(array, None, "a copy from the host", stream):
        _write_host(array, value, stream)


def _write_host(array: DeviceNDArray, value: Any, stream: Any) -> None:
    import numpy as np

    if array.is_c_contiguous() or array.is_f_contiguous():
        host = np.asarray(value, order="C" if array.is_c_contiguous() else "F")
        _weft.copy_to_device(array, _bytes_of(host), stream)
        return
    # The gaps between elements are not written. The elements are copied in memory order.
    upwards = tuple(slice(None, None, -1 if stride < 0 else None) for stride in array.strides)
    axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    host = np.ascontiguousarray(value[upwards].transpose(axes))
    _weft.copy_to_device(array[upwards].transpose(axes), _bytes_of(host), stream)
