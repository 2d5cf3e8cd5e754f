"""NumPy's arrays in memory that host and device share. Imported when the first of them is made, because of NumPy."""

from __future__ import annotations

import contextlib
import weakref

import numpy as np

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, array_at
from weft.cuda._memory.pointers import address_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import HostMemory
    from weft.cuda._contexts import Context


class Lent:
    """Memory that a memory manager gave, as `HostMemory` is: it goes back when all work on the device is done.

    Parameters
    ----------
    pointer
        What the manager gave: a `PinnedMemory`, a pointer to a `MappedMemory` or to a `ManagedMemory`.
    nbytes
        The requested size in bytes.
    device
        The number of the device.
    """

    def __init__(self, pointer: Any, nbytes: int, device: int) -> None:
        on_device = getattr(pointer, "device_pointer", None)
        self.address = address_of(getattr(pointer, "host_pointer", on_device))
        self.device_address = self.address if on_device is None else address_of(on_device)
        self.nbytes = nbytes
        self.device = device
        # At process exit, all memory is freed anyway.
        weakref.finalize(self, _give_back, [pointer], device).atexit = False


def _give_back(pointer: list[Any], device: int) -> None:
    with contextlib.suppress(Exception):  # the device may be broken
        _weft.free_pending(device)
    pointer.clear()


def allocate(nbytes: int, *, mapped: bool, managed: bool = False, attach_global: bool = True) -> HostMemory | Lent:
    """Allocate memory that host and device share, of the device's memory manager where there is one.

    Parameters
    ----------
    nbytes
        Bytes.
    mapped
        A manager is to give such as the device reaches, too. Weft's always is.
    managed, attach_global
        Allocate memory that moves to where it is used.
    """
    context = _with_manager()
    if context is None:
        return _weft.HostMemory(nbytes, managed=managed, attach_global=attach_global)
    # At least one byte: an empty array also has an address.
    size = max(nbytes, 1)
    pointer: Any = context.memallocmanaged(size, attach_global) if managed else context.memhostalloc(size, mapped)
    return Lent(pointer, nbytes, context.device.id)


def lock(array: np.ndarray[Any, Any], *, mapped: bool) -> HostMemory | Lent:
    """Lock the pages of an array in one piece, by the device's memory manager where there is one."""
    address, context = array.__array_interface__["data"][0], _with_manager()
    if context is None:
        return _weft.HostMemory.lock(address, array.nbytes)
    return Lent(context.mempin(array, address, array.nbytes, mapped), array.nbytes, context.device.id)


def _with_manager() -> Context | None:
    """Give the current context if a memory manager is set for its device."""
    if not _weft.memory_managers()[0]:
        return None
    from weft.cuda._contexts import Context
    from weft.cuda._devices import Device

    context = Context(Device(_weft.current_device_id()))
    return None if context.memory_manager is None else context


class Block:
    """Memory as NumPy takes it: bytes, which it keeps as long as an array is in them."""

    def __init__(self, memory: HostMemory | Lent) -> None:
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface."""
        data = (self._memory.address, False)
        return {"version": 3, "shape": (max(self._memory.nbytes, 1),), "typestr": "|u1", "data": data}


class MappedNDArray(np.ndarray):
    """A NumPy array that kernels take without a copy. It also has the methods of a device array."""

    stream: Any = 0
    _memory: HostMemory | Lent | None = None

    def __array_finalize__(self, made_from: Any) -> None:
        """Remember the memory: a view has its elements there, what NumPy computes has not."""
        self._memory = getattr(made_from, "_memory", None)
        self.stream = getattr(made_from, "stream", 0)

    @property
    def _weft_device_array(self) -> DeviceNDArray | None:
        """The array as kernels see it; None where it is in memory of its own."""
        memory = self._memory
        start = self.__array_interface__["data"][0] - memory.address if memory else -1
        if memory is None or not 0 <= start < max(memory.nbytes, 1):
            return None
        address, readonly = memory.device_address + start, not self.flags.writeable
        array = array_at(self, address, self.shape, self.strides, self.dtype, memory.device, readonly)
        if self.stream:
            array.stream = self.stream
        return array

    def __getattr__(self, name: str) -> Any:
        """Give what NumPy's arrays do not have and a device array has."""
        array = None if name.startswith("_") and name != "__cuda_array_interface__" else self._weft_device_array
        if array is None:
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(array, name)


class ManagedNDArray(MappedNDArray):
    """The same in memory that moves to where it is used."""
