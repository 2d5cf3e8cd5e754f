"""Device arrays: NumPy's shape of things in the memory of a device.

An array is a window into memory: an address, extents and strides in bytes. Views share the memory with the array that
they were made from and keep it alive. What cannot be a view is an error, never a silent copy.
"""

from __future__ import annotations

import math

from weft import _weft
from weft._weft import DeviceArrayBase
from weft.cuda._streams import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal, Self

    import numpy as np

    from weft.cuda._memory.ipc import IpcArrayHandle

    Order = Literal["C", "F", "A"]


class DeviceNDArray(DeviceArrayBase):
    """An array in device memory. Make one with `cuda.to_device` or `cuda.device_array`."""

    # The stream that copies use where none is named.
    stream: Any = 0

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make an array of memory and its description; see `DeviceArrayBase`."""
        return super().__new__(cls, *args, **kwargs)

    # --- What it is ---

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
            No other process can open the memory (code 801): arrays are in the driver's pool unless WEFT_MEMORY_POOL=0,
            and on the CPU none is shared.
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
    def flags(self) -> dict[str, bool]:
        """``C_CONTIGUOUS`` and ``F_CONTIGUOUS``."""
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

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

            # Fields that overlap or lie in another order have none.
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

    def __len__(self) -> int:
        if not self.ndim:
            msg = "len() of a device array of 0 dimensions"
            raise TypeError(msg)
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<weft.cuda.DeviceNDArray shape={self.shape} dtype={self.dtype} device={self.device}>"

    def __bool__(self) -> bool:
        return bool(self.copy_to_host())

    def __reduce__(self) -> tuple[Any, ...]:
        from weft.cuda._memory.making import to_device

        return to_device, (self.copy_to_host(),)

    # --- Copies ---

    def copy_to_host(self, ary: np.ndarray[Any, Any] | None = None, stream: Any = 0) -> np.ndarray[Any, Any]:
        """Copy to the host.

        Parameters
        ----------
        ary
            The array to copy into: the same shape and dtype. A new one if None, with this array's order.
        stream
            The stream to copy in; the call waits for it.
        """
        import numpy as np

        if ary is None:
            return _read(self, stream)
        self._check_like(ary)
        if (self.is_c_contiguous() and ary.flags.c_contiguous) or (self.is_f_contiguous() and ary.flags.f_contiguous):
            _weft.copy_to_host(self.device, self.address, _bytes_of(ary), stream or self.stream)
        else:
            np.copyto(ary, _read(self, stream))
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy a host or device array of the same shape and dtype into this array."""
        self._check_like(ary)
        write(self, ary, stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Copy to the host for NumPy."""
        if copy is False:
            msg = "a device array cannot become a NumPy array without a copy"
            raise ValueError(msg)
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def _check_like(self, other: Any) -> None:
        if other.dtype != self.dtype:
            msg = f"incompatible dtype: {other.dtype} vs. {self.dtype}"
            raise TypeError(msg)
        if other.shape != self.shape:
            msg = f"incompatible shape: {other.shape} vs. {self.shape}"
            raise ValueError(msg)

    # --- Elements and views ---

    def __getitem__(self, key: Any) -> Any:
        return self.getitem(key)

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Copy an element to the host, or make a view: of a part, of a field by its name, of a record."""
        view = self._index(item)
        if view.ndim or _has_slice(item) or isinstance(item, str):
            return view
        if self.dtype.names:
            return self._record(view.address, self.dtype)
        return _read(view, stream)[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.setitem(key, value)

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Write an element or a part of the array; the value is broadcast as in NumPy."""
        import numpy as np

        view = self._index(key)
        if isinstance(value, DeviceNDArray) and value.shape == view.shape and value.dtype == view.dtype:
            write(view, value, stream)
            return
        host: np.ndarray[Any, Any] = np.asarray(value)
        if host.ndim > view.ndim and any(extent != 1 for extent in host.shape[: host.ndim - view.ndim]):
            msg = f"Can't assign {host.ndim}-D array to {view.ndim}-D self"
            raise ValueError(msg)
        host = host.reshape(host.shape[max(host.ndim - view.ndim, 0) :])
        offset = view.ndim - host.ndim
        for axis, extent in enumerate(host.shape):
            if extent not in (1, view.shape[offset + axis]):
                msg = (
                    f"Can't copy sequence with size {extent} to array axis {offset + axis} "
                    f"with dimension {view.shape[offset + axis]}"
                )
                raise ValueError(msg)
        # NumPy says what can be assigned, and how: no complex number to a real one, no number beyond the type's range.
        elements: np.ndarray[Any, Any] = np.empty(view.shape, view.dtype)
        elements[...] = host if isinstance(value, (np.ndarray, DeviceNDArray)) else value
        write(view, elements, stream)

    def _field(self, name: str) -> tuple[np.dtype[Any], int]:
        """Give a field's dtype and its offset."""
        fields = self.dtype.fields
        if fields is None or name not in fields:
            msg = f"no field of name {name}"
            raise ValueError(msg)
        return fields[name][0], fields[name][1]

    def _field_view(self, name: str) -> DeviceNDArray:
        """Make a view of a field of each record; an array in it is dimensions of the view."""
        dtype, offset = self._field(name)
        inner = _weft.contiguous_strides(dtype.shape, dtype.base.itemsize, "C")
        shape, strides = [*self.shape, *dtype.shape], [*self.strides, *inner]
        return self._view(self.address + offset, shape, strides, dtype.base)

    def _record(self, address: int, dtype: Any) -> DeviceRecord:
        record = DeviceRecord.at(self.owner, address, dtype, self.device, readonly=self.readonly)
        if self.stream:
            record.stream = self.stream
        return record

    def _index(self, key: Any) -> DeviceNDArray:
        if isinstance(key, str) and self.dtype.names:
            return self._field_view(key)
        items = list(key) if isinstance(key, tuple) else [key]
        rest = self.ndim - sum(item is not Ellipsis for item in items)
        if rest < 0:
            msg = f"too many indices: the array has {self.ndim} dimensions, but {len(items)} were given"
            raise IndexError(msg)
        if sum(item is Ellipsis for item in items) > 1:
            msg = "an index can only have a single ellipsis"
            raise IndexError(msg)
        place = next((at for at, item in enumerate(items) if item is Ellipsis), None)
        if place is None:
            items += [slice(None)] * rest
        else:
            items[place : place + 1] = [slice(None)] * rest
        address, shape, strides = self.address, [], []
        for axis, (item, extent, stride) in enumerate(zip(items, self.shape, self.strides, strict=True)):
            if isinstance(item, slice):
                start, stop, step = item.indices(extent)
                count = len(range(start, stop, step))
                address += start * stride if count else 0
                shape.append(count)
                # A step that leads out of any memory leads from no element to another.
                strides.append(stride * step if abs(stride * step) < 1 << 63 else stride)
                continue
            if isinstance(item, (list, DeviceNDArray)) or getattr(item, "ndim", False):
                what = "a list" if isinstance(item, list) else "an array"
                msg = (
                    f"device arrays are not indexed with {what} of indices or a mask: copy the array to the host first "
                    "(`copy_to_host()`), or do it in a kernel"
                )
                raise TypeError(msg)
            if isinstance(item, bool) or not hasattr(item, "__index__"):
                msg = f"device arrays are indexed with integers, slices and ..., not {type(item).__name__}"
                raise TypeError(msg)
            index = item.__index__()
            if not -extent <= index < extent:
                msg = f"index {index} is out of bounds for axis {axis} with size {extent}"
                raise IndexError(msg)
            address += (index + extent if index < 0 else index) * stride
        return self._view(address, shape, strides)

    def _view(self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any = None) -> DeviceNDArray:
        dtype = self.dtype if dtype is None else dtype
        view = DeviceNDArray(self.owner, address, shape, strides, dtype, self.device, self.readonly)
        if self.stream:
            view.stream = self.stream
        return view

    def bind(self, stream: Any = 0) -> DeviceNDArray:
        """Make the same array with a stream of its own for copies."""
        clone = self._view(self.address, self.shape, self.strides)
        clone.stream = stream
        return clone

    def reshape(self, *newshape: Any, order: Order = "C") -> DeviceNDArray:
        """Make a view with other extents; one of them may be -1."""
        given = newshape[0] if len(newshape) == 1 and not hasattr(newshape[0], "__index__") else newshape
        shape: list[int] = [extent.__index__() for extent in given]
        known: int = math.prod(extent for extent in shape if extent >= 0)
        if shape.count(-1) == 1 and known and self.size % known == 0:
            shape[shape.index(-1)] = self.size // known
        if any(extent < 0 for extent in shape) or math.prod(shape) != self.size:
            msg = "reshape changes the size of the array"
            raise ValueError(msg)
        if order not in ("C", "F"):
            msg = f"order must be 'C' or 'F', not {order!r}"
            raise ValueError(msg)
        contiguous = self.is_c_contiguous() if order == "C" else self.is_f_contiguous()
        if not contiguous and tuple(shape) != self.shape:
            msg = "reshape would require copy"
            raise NotImplementedError(msg)
        strides = self.strides if tuple(shape) == self.shape else _weft.contiguous_strides(shape, self.itemsize, order)
        return self._view(self.address, shape, strides)

    def ravel(self, order: Order = "C", stream: Any = 0) -> DeviceNDArray:
        """Make a view with one dimension."""
        if order not in ("C", "F", "A"):
            msg = f"order must be 'C', 'F' or 'A', not {order!r}"
            raise ValueError(msg)
        if not ((self.is_c_contiguous() and order in "CA") or (self.is_f_contiguous() and order in "FA")):
            msg = "ravel would require copy"
            raise NotImplementedError(msg)
        view = self._view(self.address, [self.size], [self.itemsize])
        return view.bind(stream) if stream else view

    def transpose(self, axes: Sequence[int] | None = None) -> DeviceNDArray:
        """Make a view with the dimensions in another order, reversed unless given."""
        given = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        axes = [axis % max(self.ndim, 1) for axis in given]
        if sorted(axes) != list(range(self.ndim)):
            msg = f"invalid axes list {given}"
            raise ValueError(msg)
        shape = [self.shape[axis] for axis in axes]
        return self._view(self.address, shape, [self.strides[axis] for axis in axes])

    @property
    def T(self) -> DeviceNDArray:
        """The array with its dimensions reversed, as a view."""
        return self.transpose()

    def view(self, dtype: Any) -> DeviceNDArray:
        """Make a view with the same memory read as another dtype."""
        dtype = _weft.as_dtype(dtype)
        shape, strides = list(self.shape), list(self.strides)
        if dtype.itemsize != self.itemsize:
            if not shape:
                msg = "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
                raise ValueError(msg)
            if not self.is_c_contiguous():
                msg = "To change to a dtype of a different size, the array must be C-contiguous"
                raise ValueError(msg)
            if shape[-1] * self.itemsize % dtype.itemsize:
                msg = (
                    "When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                    "the last axis of the array."
                )
                raise ValueError(msg)
            shape[-1] = shape[-1] * self.itemsize // dtype.itemsize
            strides = _weft.contiguous_strides(shape, dtype.itemsize, "C")
        return self._view(self.address, shape, strides, dtype)

    def squeeze(self, axis: int | tuple[int, ...] | None = None, stream: Any = 0) -> DeviceNDArray:
        """Make a view without dimensions of one element."""
        axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        drop = {at % max(self.ndim, 1) for at in axes if axis is not None or self.shape[at] == 1}
        if any(self.shape[at] != 1 for at in drop):
            msg = "cannot select an axis to squeeze out which has size not equal to one"
            raise ValueError(msg)
        kept = [at for at in range(self.ndim) if at not in drop]
        view = self._view(self.address, [self.shape[at] for at in kept], [self.strides[at] for at in kept])
        return view.bind(stream) if stream else view

    def split(self, section: int, stream: Any = 0) -> Iterator[DeviceNDArray]:
        """Give views of ``section`` elements each; the last may have fewer."""
        if self.ndim != 1:
            msg = "only support 1d array"
            raise ValueError(msg)
        if self.strides[0] != self.itemsize:
            msg = "only support unit stride"
            raise ValueError(msg)
        for start in range(0, self.size, section):
            part = self[start : start + section]
            yield part.bind(stream) if stream else part


class DeviceRecord(DeviceNDArray):
    """A record in device memory: `cuda.to_device` of a NumPy record, or an element of a device array of records.

    Kernels take it as a record. A field is read and written by its name; arrays and records in it are views.
    """

    def __new__(cls, dtype: Any, stream: Any = 0) -> Self:
        """Make a record with undefined contents."""
        dtype = _weft.as_dtype(dtype)
        memory = _weft.Memory(dtype.itemsize, stream)
        record = cls.at(memory, memory.address, dtype, memory.device)
        if stream:
            record.stream = stream
        return record

    @classmethod
    def at(cls, owner: Any, address: int, dtype: Any, device: int, *, readonly: bool = False) -> Self:
        """Make the record at an address in the memory of `owner`."""
        if not dtype.names:
            msg = f"{dtype} is no dtype of records"
            raise TypeError(msg)
        return DeviceArrayBase.__new__(cls, owner, address, (), (), dtype, device, readonly, record=True)

    def __repr__(self) -> str:
        return f"<weft.cuda.DeviceRecord dtype={self.dtype} device={self.device}>"

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """Copy to the host: to a record of the same dtype, or to a new one."""
        import numpy as np

        if ary is None:
            return _read(self, stream)[()]
        # NumPy's array of a record has the record's memory.
        super().copy_to_host(np.asarray(ary), stream)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy a record of the host or of the device into this one."""
        import numpy as np

        super().copy_to_device(ary if isinstance(ary, DeviceNDArray) else np.asarray(ary), stream)

    def bind(self, stream: Any = 0) -> DeviceRecord:
        """Make the same record with a stream of its own for copies."""
        clone = self._record(self.address, self.dtype)
        clone.stream = stream
        return clone

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Copy a number of a field to the host, or make a view of an array or record in a field."""
        if not isinstance(item, str):
            return super().getitem(item, stream)
        dtype, offset = self._field(item)
        if dtype.names:
            return self._record(self.address + offset, dtype)
        if dtype.shape:
            return self._field_view(item)
        # As bytes: NumPy's texts are dtypes of no array here.
        view = self._view(self.address + offset, [dtype.itemsize], [1], "u1")
        return _read(view, stream).view(dtype)[0]

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Write a field, or with ``...`` the whole record."""
        import numpy as np

        if not isinstance(key, str):
            super().setitem(key, value, stream)
            return
        dtype, offset = self._field(key)
        host: np.ndarray[Any, Any] = np.empty(1, np.dtype([("field", dtype)]))
        host["field"] = value.copy_to_host() if isinstance(value, DeviceNDArray) else value
        write(self._view(self.address + offset, [dtype.itemsize], [1], "u1"), host.view("u1"), stream)


def _has_slice(item: Any) -> bool:
    items = item if isinstance(item, tuple) else (item,)
    return any(part is Ellipsis or isinstance(part, slice) for part in items)


def _bytes_of(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One dimension of bytes of a contiguous array, without a copy."""
    return host.reshape(-1, order="A").view("u1")


def _read(array: DeviceNDArray, stream: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    low, high = array.span
    memory = np.empty(high - low, np.uint8)
    _weft.copy_to_host(array.device, array.address + low, memory, stream or array.stream)
    host = np.ndarray(array.shape, array.dtype, memory.data, -low, array.strides)
    contiguous = array.is_c_contiguous() or array.is_f_contiguous()
    # A view of a bigger piece of memory is cut out of it, in NumPy's own order.
    return host if contiguous else host.copy(order="K")


def write(array: DeviceNDArray, value: Any, stream: Any) -> None:
    """Copy a host or device array of the same shape and dtype into an array."""
    import numpy as np

    if not array.size:
        return
    stream = stream or array.stream
    both_c = array.is_c_contiguous() and (not isinstance(value, DeviceNDArray) or value.is_c_contiguous())
    both_f = array.is_f_contiguous() and (not isinstance(value, DeviceNDArray) or value.is_f_contiguous())
    if isinstance(value, DeviceNDArray):
        if (both_c or both_f) and value.device == array.device:
            _weft.copy_on_device(array, value, stream)
            return
        value = _read(value, stream)
    if both_c or both_f:
        host = np.asarray(value, order="C" if both_c else "F")
        _weft.copy_to_device(array, _bytes_of(host), stream)
        return
    # What lies between the elements is not touched. They are taken in the order in which they lie in memory.
    upwards = tuple(slice(None, None, -1 if stride < 0 else None) for stride in array.strides)
    axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    host = np.ascontiguousarray(value[upwards].transpose(axes))
    _weft.copy_to_device(array[upwards].transpose(axes), _bytes_of(host), stream)
