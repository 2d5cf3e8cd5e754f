"""Pointers to memory that contexts allocate, or memory managers.

A pointer owns its memory, or is a view that keeps the owner alive. Memory of weft's own is freed when the last pointer
and the last array that use it are gone, after the work that uses it; memory with a finalizer when that is called: by
`free`, or with the pointer. The classes have the names and the meaning of numba-cuda's
(https://nvidia.github.io/numba-cuda/user/external-memory.html).
"""

from __future__ import annotations

import contextlib
import functools
import types
import weakref

from weft import _weft
from weft.cuda._memory import observed
from weft.cuda._streams import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from weft._weft import DeviceArrayBase
    from weft.cuda._contexts import Context


def address_of(pointer: Any) -> int:
    """Give the address that a pointer is: an integer, or an object with one in ``value`` or as ``int(pointer)``."""
    if pointer is None:
        return 0
    value = getattr(pointer, "value", pointer)
    try:
        return 0 if value is None else int(value)
    except (TypeError, ValueError):
        msg = f"pointer must be an integer or a ctypes pointer, not {type(pointer).__name__}"
        raise TypeError(msg) from None


class MemoryPointer:
    """Memory of a device.

    Parameters
    ----------
    context
        The context that the memory is in.
    pointer
        The device address: an integer, a ``ctypes`` pointer or another object that ``int`` takes.
    size
        Bytes.
    owner
        The owner of the memory, which the new object keeps alive; the pointer itself if None.
    finalizer
        Called without arguments, once, when the memory is not needed any more.
    """

    def __init__(
        self,
        context: Context,
        pointer: Any,
        size: int,
        owner: Any = None,
        finalizer: Callable[[], object] | None = None,
    ) -> None:
        if size < 0:
            msg = f"size must be a number of bytes, got {size}"
            raise ValueError(msg)
        self.context = context
        self.device_pointer = Handle(address_of(pointer))
        self.size = size
        self._owner = owner
        self.is_managed = finalizer is not None or isinstance(owner, (_weft.Memory, _weft.HostMemory))
        self.is_alive = True
        # The number of owned pointers, plus one for this pointer.
        self.refct = 1
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same bytes: arrays make a new pointer at each access."""
        if not isinstance(other, MemoryPointer):
            return NotImplemented
        return (int(self.device_pointer), self.size) == (int(other.device_pointer), other.size)

    def __hash__(self) -> int:
        """As equal pointers have it."""
        return hash((int(self.device_pointer), self.size))

    @property
    def handle(self) -> Handle:
        """The device address, an integer with ``.value``."""
        return self.device_pointer

    @property
    def device_pointer_value(self) -> int | None:
        """The device address; None for an empty allocation."""
        return int(self.device_pointer) or None

    @property
    def device_ctypes_pointer(self) -> Any:
        """The address as a ``ctypes.c_size_t``, as the driver's ``CUdeviceptr`` is."""
        import ctypes

        return ctypes.c_size_t(int(self.device_pointer))

    @property
    def owner(self) -> Any:
        """The owner of the memory: this pointer, or the one that it is a view of."""
        return self if self._owner is None or self.is_managed else self._owner

    def own(self) -> OwnedPointer:
        """Give a pointer that is counted: with the last of them the memory is freed."""
        return OwnedPointer(self)

    def free(self) -> None:
        """Let the memory go now, if it has a finalizer or is weft's; a view has nothing to free.

        Memory that an array uses, too, is freed with the array.

        Raises
        ------
        RuntimeError
            It was freed before.
        """
        if self.is_managed:
            if not self.is_alive:
                msg = "Freeing dead pointer"
                raise RuntimeError(msg)
            self.is_alive = False
            if self._finalizer is not None:
                self._finalizer()
            self._owner = None

    def memset(self, byte: int, count: int | None = None, stream: Any = 0) -> None:
        """Set bytes.

        Parameters
        ----------
        byte
            The value, from 0 to 255.
        count
            How many bytes, from the first one; all of them if None.
        stream
            The stream to do so in.
        """
        count = self.size if count is None else count
        if not 0 <= byte <= 255:
            msg = f"byte must be a value from 0 to 255, got {byte}"
            raise ValueError(msg)
        if not 0 <= count <= self.size:
            msg = f"count must be a number of bytes from 0 to {self.size}, got {count}"
            raise ValueError(msg)
        self._check_alive()
        memory = self._memory()
        device, address = self.context.device.id, int(self.device_pointer)
        with _observed_fill(memory or self, address, count, device, stream):
            _weft.fill(device, address, byte, count, memory, stream)

    def view(self, start: int, stop: int | None = None) -> MemoryPointer | OwnedPointer:
        """Return a pointer to the bytes from ``start`` up to ``stop``, which keeps this memory alive."""
        part, owner = self._part(start, stop), self.owner
        return OwnedPointer(owner, part) if isinstance(owner, MemoryPointer) else part

    def _part(self, start: int, stop: int | None) -> MemoryPointer:
        self._check_alive()
        if self.size == 0:
            # As in numba-cuda, an empty view may start anywhere.
            return MemoryPointer(self.context, None, 0, self.owner)
        size = (self.size if stop is None else stop) - start
        if not 0 <= start <= self.size or size < 0 or start + size > self.size:
            msg = f"a view from {start} to {stop} is outside the {self.size} bytes of the memory"
            raise ValueError(msg)
        return MemoryPointer(self.context, int(self.device_pointer) + start, size, self.owner)

    def _memory(self) -> _weft.Memory | None:
        """Give the memory if it is weft's, so that it is noted who uses it."""
        owner = self._owner
        if isinstance(owner, _weft.Memory):
            return owner
        return owner._memory() if isinstance(owner, MemoryPointer) else None

    def _check_alive(self) -> None:
        if not self.is_alive:
            msg = "the memory of this pointer was freed"
            raise RuntimeError(msg)
        if isinstance(self._owner, MemoryPointer):
            self._owner._check_alive()
        elif isinstance(self._owner, _weft.LoadedModule) and not self._owner.is_loaded:
            msg = "the module of this variable was unloaded"
            raise RuntimeError(msg)

    def __int__(self) -> int:
        return int(self.device_pointer)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {int(self.device_pointer):#x} of {self.size} bytes>"


class AutoFreePointer(MemoryPointer):
    """A pointer whose memory goes with the last `OwnedPointer` of it, or with itself if there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.refct -= 1


class _HostBytes:
    """Memory of the host as NumPy and Python take it: bytes. ``host_pointer`` is its address."""

    host_pointer: Handle
    size: int

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface: bytes."""
        return {"version": 3, "shape": (self.size,), "typestr": "|u1", "data": (int(self.host_pointer), False)}

    def __buffer__(self, flags: int) -> memoryview:
        """Give the bytes, from Python 3.12 on."""
        import ctypes

        # The view holds the object that created it.
        return memoryview((ctypes.c_ubyte * self.size).from_address(int(self.host_pointer))).cast("B")


class ManagedMemory(_HostBytes, AutoFreePointer):
    """Memory that moves to where it is used, host or device."""

    @property
    def host_pointer(self) -> Handle:  # type: ignore[override]
        """The address in this process, which is that on the device."""
        return self.device_pointer


class MappedMemory(_HostBytes, AutoFreePointer):
    """Page-locked memory of the host that the device reaches, too. ``handle`` is the address on the device."""

    def __init__(
        self,
        context: Context,
        pointer: Any,
        size: int,
        owner: Any = None,
        finalizer: Callable[[], object] | None = None,
    ) -> None:
        host = address_of(pointer)
        if isinstance(owner, _weft.HostMemory):
            on_device = owner.device_address
        else:
            on_device = _weft.mapped_address(context.device.id, host)
        super().__init__(context, on_device, size, owner, finalizer)
        self.host_pointer = Handle(host)
        # The object that owns the memory passed to `mempin`.
        self.pinned: Any = None


class PinnedMemory(_HostBytes):
    """Page-locked memory of the host.

    Parameters
    ----------
    context
        The context that locked it.
    pointer
        The address in this process.
    size
        Bytes.
    owner
        The owner of the memory, which the new object keeps alive; the pointer itself if None.
    finalizer
        Called without arguments when this object is gone.
    """

    def __init__(
        self,
        context: Context,
        pointer: Any,
        size: int,
        owner: Any = None,
        finalizer: Callable[[], object] | None = None,
    ) -> None:
        self.context = context
        self.host_pointer = Handle(address_of(pointer))
        self.size = size
        self._owner = owner
        # The object that owns the memory passed to `mempin`.
        self.pinned: Any = None
        self.is_managed = finalizer is not None or isinstance(owner, _weft.HostMemory)
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)

    @property
    def handle(self) -> Handle:
        """The address in this process."""
        return self.host_pointer

    @property
    def owner(self) -> Any:
        """The owner of the memory."""
        return self if self._owner is None or self.is_managed else self._owner

    def own(self) -> PinnedMemory:
        """Give the object itself: it goes with the last reference to it."""
        return self


class OwnedPointer:
    """A pointer that is counted: with the last one of a memory its pointer frees it.

    It has the attributes of the pointer that it is made of.
    """

    def __init__(self, memptr: MemoryPointer, view: MemoryPointer | None = None) -> None:
        self._mem = memptr
        self._view = memptr if view is None else view
        memptr.refct += 1

        def release() -> None:
            memptr.refct -= 1
            if memptr.refct == 0 and memptr.is_alive:
                memptr.free()

        self._release = weakref.finalize(self, release)
        # At process exit, all memory is freed anyway.
        self._release.atexit = False

    def own(self) -> OwnedPointer:
        """Give another one of the same memory."""
        return OwnedPointer(self._mem, self._view)

    def view(self, start: int, stop: int | None = None) -> OwnedPointer:
        """Give one to the bytes from ``start`` up to ``stop``."""
        return OwnedPointer(self._mem, self._view._part(start, stop))

    def __int__(self) -> int:
        return int(self._view)

    def __getattr__(self, name: str) -> Any:
        if name == "_view" or (name.startswith("__") and name != "__array_interface__"):
            raise AttributeError(name)
        found = getattr(self._view, name)
        # The bound method keeps this pointer alive: `context.memalloc(8).memset(0)` has no other reference.
        return functools.partial(_call, self, found) if isinstance(found, types.MethodType) else found

    def __buffer__(self, flags: int) -> memoryview:
        """Give the bytes of memory of the host, from Python 3.12 on."""
        if not hasattr(self, "__array_interface__"):
            msg = "device memory has no buffer"
            raise BufferError(msg)
        buffer: memoryview = self._view.__buffer__(flags)  # type: ignore[attr-defined]
        return buffer

    def __repr__(self) -> str:
        return f"<OwnedPointer of {self._view!r}>"


def _call(_alive: OwnedPointer, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return method(*args, **kwargs)


def allocate(context: Context, size: int) -> OwnedPointer:
    """Allocate memory that other processes can open; see `Context.memalloc`."""
    with context.device:
        memory = _weft.Memory(_size(size), shareable=True)
    return AutoFreePointer(context, memory.address, memory.nbytes, memory).own()


def allocate_managed(context: Context, size: int, attach_global: bool) -> OwnedPointer:
    """See `Context.memallocmanaged`."""
    with context.device:
        memory = _weft.HostMemory(_size(size), managed=True, attach_global=attach_global)
    return ManagedMemory(context, memory.address, size, memory).own()


def allocate_host(context: Context, size: int, mapped: bool) -> OwnedPointer | PinnedMemory:
    """See `Context.memhostalloc`."""
    with context.device:
        memory = _weft.HostMemory(_size(size))
    made = (MappedMemory if mapped else PinnedMemory)(context, memory.address, size, memory)
    return made.own()


def lock_host(context: Context, owner: Any, pointer: Any, size: int, mapped: bool) -> OwnedPointer | PinnedMemory:
    """See `Context.mempin`."""
    address = address_of(pointer)
    with context.device:
        memory = _weft.HostMemory.lock(address, _size(size))
    made = (MappedMemory if mapped else PinnedMemory)(context, address, size, memory)
    # Attributes are released in order: the pages are unlocked before their owner is released.
    made.pinned = owner
    return made.own()


def of_array(array: DeviceArrayBase) -> MemoryPointer:
    """Give the memory that the elements of a device array lie in."""
    from weft.cuda._contexts import Context
    from weft.cuda._devices import Device

    low, high = array.span
    return MemoryPointer(Context(Device(array.device)), array.address + low, high - low, array.owner)


def device_extents(memory: Any) -> tuple[int, int]:
    """Return the start and end addresses of the allocation that contains a pointer.

    Raises
    ------
    DriverError
        The driver knows no such memory; the CPU knows none (code 801).
    """
    base, nbytes = _weft.memory_extents(memory.context.device.id, address_of(memory.device_pointer))
    return Handle(base), Handle(base + nbytes)


def _size(size: int) -> int:
    if size < 0:
        msg = f"the size of memory must be a number of bytes, got {size}"
        raise ValueError(msg)
    return size


def _observed_fill(owner: Any, address: int, count: int, device: int, stream: Any) -> AbstractContextManager[Any]:
    """Notify the observers that bytes are set."""
    if not observed.observers:
        return contextlib.nullcontext()
    import numpy as np

    from weft.cuda._memory.device_array import array_at

    to = array_at(owner, address, (count,), (1,), np.dtype(np.uint8), device)
    return observed.writing(to, observed.UNSEEN, "`memset`", stream)
