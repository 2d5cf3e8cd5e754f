"""Device memory of other processes of this machine.

A handle says where memory of a process is, and can be pickled; another process opens it, and both see the same bytes.
The process that allocated the memory must hold it as long as it is open elsewhere, and does not open it itself.

The driver lets other processes open memory from ``cuMemAlloc``, but not from its stream-ordered pool, where device
arrays are: `cuda.current_context().memalloc` gives such memory, and with ``WEFT_MEMORY_POOL=0`` all arrays are in such.
Memory of the CPU has a handle, too, so that a program can make one of each of its arrays; no process opens it.
(https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html: ``cuIpcGetMemHandle``)
"""

from __future__ import annotations

import contextlib
import math
import os

from weft import _weft
from weft.cuda._memory.pointers import AutoFreePointer, address_of, of_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from weft.cuda._contexts import Context
    from weft.cuda._memory.device_array import DeviceNDArray
    from weft.cuda._memory.pointers import MemoryPointer, OwnedPointer

_HANDLE_BYTES = 64


class RawHandle(bytes):
    """The driver's handle, a ``CUipcMemHandle``: 64 bytes, which are its ``reserved``."""

    @property
    def reserved(self) -> bytes:
        """The bytes."""
        return bytes(self)


class IpcHandle:
    """Memory of a process, for another one to open.

    Parameters
    ----------
    base
        The owner of the memory in the process that allocated it; None in other processes.
    handle
        The driver's handle: 64 bytes, or what becomes that.
    size
        Bytes that are shared.
    source_info
        The identity of the device (`Device.get_device_identity`); None if it is the one that opens.
    offset
        The offset in bytes from the start of the allocation.
    """

    def __init__(
        self, base: Any, handle: Any, size: int, source_info: dict[str, int] | None = None, offset: int = 0
    ) -> None:
        self.base = base
        self.handle = RawHandle(_handle_bytes(handle))
        self.size = size
        self.source_info = source_info
        self.offset = offset
        self._opened: Any = None

    def can_access_peer(self, context: Context) -> bool:
        """Whether the memory is on a context's device, or on one that can be reached from there."""
        from weft.cuda._devices import Device

        if self.source_info is None or self.source_info == context.device.get_device_identity():
            return True
        return context.can_access_peer(Device.from_identity(self.source_info).id)

    def open(self, context: Context) -> MemoryPointer | OwnedPointer:
        """Open the memory for a context, or copy it there if its device does not reach it.

        Raises
        ------
        ValueError
            This process made the handle, or it is open already.
        """
        return self.open_direct(context) if self.can_access_peer(context) else self.open_staged(context)

    def open_direct(self, context: Context) -> OwnedPointer:
        """Open the memory for a context whose device reaches it: what either process writes, both see."""
        self._check_closed()
        pointer = open_handle(context, self.handle, self.offset + self.size)
        self._opened = pointer
        return pointer.view(self.offset)

    def open_staged(self, context: Context) -> MemoryPointer:
        """Copy the memory to a context's device through the host: what is written later is not seen."""
        import numpy as np

        from weft.cuda._devices import Device
        from weft.cuda._memory.making import device_array

        self._check_closed()
        source = Device(0) if self.source_info is None else Device.from_identity(self.source_info)
        there = open_handle(source.get_primary_context(), self.handle, self.offset + self.size)
        with context.device:
            copy = device_array(self.size, np.uint8)
            copy.copy_to_device(_array(there, self.offset, (self.size,), np.dtype(np.uint8), None))
        self._opened = of_array(copy)
        pointer: MemoryPointer = self._opened
        return pointer

    def open_array(
        self, context: Context, shape: int | Sequence[int], dtype: Any, strides: Sequence[int] | None = None
    ) -> DeviceNDArray:
        """Open the memory as an array; strides are in bytes, those of order "C" if None."""
        pointer = self.open(context)
        return _array(pointer, 0, shape, _weft.as_dtype(dtype), strides)

    def close(self) -> None:
        """Let the memory go, which is closed when no array uses it any more; ``ValueError`` if it is not open."""
        if self._opened is None:
            msg = "IpcHandle not opened"
            raise ValueError(msg)
        self._opened = None

    def _check_closed(self) -> None:
        if self.base is not None:
            msg = "opening IpcHandle from original process"
            raise ValueError(msg)
        if self._opened is not None:
            msg = "IpcHandle is already opened"
            raise ValueError(msg)

    def __reduce__(self) -> tuple[Any, ...]:
        return IpcHandle, (None, bytes(self.handle), self.size, self.source_info, self.offset)


class IpcArrayHandle:
    """A device array, for another process to open: ``with handle as array: …``, or `open` and `close`."""

    def __init__(self, ipc_handle: IpcHandle, array_desc: dict[str, Any]) -> None:
        self._ipc_handle = ipc_handle
        self._array_desc = array_desc

    def open(self) -> DeviceNDArray:
        """Give the array, on the current device. ``ValueError`` in the process that made the handle."""
        from weft.cuda._devices import current_context

        description = self._array_desc
        pointer = self._ipc_handle.open(current_context())
        return _array(pointer, description["start"], description["shape"], description["dtype"], description["strides"])

    def close(self) -> None:
        """Let the memory go, which is closed when no array uses it any more; ``ValueError`` if it is not open."""
        self._ipc_handle.close()

    def __enter__(self) -> DeviceNDArray:
        return self.open()

    def __exit__(self, kind: object, error: object, at: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return IpcArrayHandle, (self._ipc_handle, self._array_desc)


def handle_of(context: Context, memory: Any) -> IpcHandle:
    """Give a handle of memory that the driver allocated; see `Context.get_ipc_handle`."""
    address = address_of(memory.device_pointer)
    if _weft.device_kind() == "cpu":
        # Memory that other processes cannot access: programs may create handles that are never opened.
        return IpcHandle(memory, _named(address), memory.size, context.device.get_device_identity())
    handle, base, _ = _weft.share_memory(context.device.id, address)
    return IpcHandle(memory, handle, memory.size, context.device.get_device_identity(), address - base)


def _named(address: int) -> bytes:
    """Give the bytes of a handle of memory of the CPU: where the memory is, and in which process."""
    return f"weft cpu {os.getpid()} {address:#x}".encode().ljust(_HANDLE_BYTES, b"\0")


def handle_of_array(array: DeviceNDArray) -> IpcArrayHandle:
    """Give a handle of an array; see `DeviceNDArray.get_ipc_handle`."""
    low, _ = array.span
    pointer = of_array(array)
    handle = pointer.context.get_ipc_handle(pointer)
    description = {"start": -low, "shape": array.shape, "strides": array.strides, "dtype": array.dtype}
    return IpcArrayHandle(handle, description)


def open_handle(context: Context, handle: Any, size: int) -> OwnedPointer:
    """Open memory of another process; see `Context.open_ipc_handle`."""
    if size < 0:
        msg = f"size must be a number of bytes, got {size}"
        raise ValueError(msg)
    with context.device:
        memory = _weft.Memory.open_shared(_handle_bytes(handle), size)
    return AutoFreePointer(context, memory.address, size, memory).own()


@contextlib.contextmanager
def open_ipc_array(
    handle: Any, shape: int | Sequence[int], dtype: Any, strides: Sequence[int] | None = None, offset: int = 0
) -> Iterator[DeviceNDArray]:
    """Open an array of another process while a block runs.

    Parameters
    ----------
    handle
        The driver's handle: 64 bytes, or what becomes that.
    shape
        Extents.
    dtype
        Element type.
    strides
        Strides in bytes; those of order "C" if None.
    offset
        The offset of the first element in bytes from the start of the allocation.

    Yields
    ------
    DeviceNDArray
        Over the other process's memory; it is closed when no array of it is left.

    Raises
    ------
    TypeError
        The handle is none.
    ValueError
        It has not 64 bytes.
    DriverError
        The driver does not open it: the process that made it has ended, or is this one.

    Examples
    --------
    >>> with cuda.open_ipc_array(handle, 1000, np.float32) as x:  # doctest: +SKIP
    ...     scale[4, 256](x, 2.0)
    """
    from weft.cuda._devices import current_context

    element = _weft.as_dtype(dtype)
    extents = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    size = math.prod(extents) * element.itemsize
    if strides is not None and 0 not in extents:
        size = sum((extent - 1) * step for extent, step in zip(extents, strides, strict=True)) + element.itemsize
    opened = IpcHandle(None, handle, size, offset=offset)
    array = opened.open_array(current_context(), extents, element, strides)
    try:
        yield array
    finally:
        opened.close()


def _array(
    pointer: Any, start: int, shape: int | Sequence[int], dtype: Any, strides: Sequence[int] | None
) -> DeviceNDArray:
    """Make an array in memory that is open; it keeps that open."""
    from weft.cuda._memory.device_array import array_at

    extents = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    steps = _weft.contiguous_strides(extents, dtype.itemsize, "C") if strides is None else strides
    owner = pointer._memory() or pointer
    return array_at(owner, int(pointer.device_pointer) + start, extents, steps, dtype, pointer.context.device.id)


def _handle_bytes(handle: Any) -> bytes:
    """Give the 64 bytes of a handle: of bytes, a ``ctypes`` array, small integers, or a ``CUipcMemHandle``."""
    given = getattr(handle, "reserved", handle)
    try:
        found = bytes(int(byte) & 0xFF for byte in given)
    except TypeError:
        msg = f"handle must be a handle of {_HANDLE_BYTES} bytes, not {type(handle).__name__}"
        raise TypeError(msg) from None
    if len(found) != _HANDLE_BYTES:
        msg = f"handle must have {_HANDLE_BYTES} bytes, not {len(found)}"
        raise ValueError(msg)
    return found
