"""Memory managers, which allocate the memory of device arrays instead of weft.

A manager is a class of numba-cuda's plugin interface, version 1
(https://nvidia.github.io/numba-cuda/user/external-memory.html): each device has an instance, made at its first
allocation. It returns a `MemoryPointer`, which weft releases when no array and no work in any stream uses its
memory; its finalizer then frees the memory.
"""

from __future__ import annotations

import abc
import contextlib
import threading

from weft import _weft
from weft.cuda._contexts import Context, MemoryInfo
from weft.cuda._memory.pointers import address_of, allocate_host, allocate_managed, lock_host
from weft.cuda._memory.pointers import allocate as _allocate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from weft.cuda._memory.ipc import IpcHandle

INTERFACE_VERSION = 1


class BaseCUDAMemoryManager(abc.ABC):
    """The interface of a memory manager.

    Parameters
    ----------
    context
        The context of the device, by keyword; ``RuntimeError`` without it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "context" not in kwargs:
            msg = "Memory manager requires a context"
            raise RuntimeError(msg)
        self.context = kwargs.pop("context")
        super().__init__(*args, **kwargs)

    @abc.abstractmethod
    def memalloc(self, size: int) -> Any:
        """Allocate ``size`` bytes on the device and return a `MemoryPointer`, whose finalizer frees them."""

    @abc.abstractmethod
    def memhostalloc(self, size: int, mapped: bool, portable: bool, wc: bool) -> Any:
        """Allocate page-locked memory of the host: a `MappedMemory` if ``mapped``, else a `PinnedMemory`."""

    @abc.abstractmethod
    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool) -> Any:
        """Lock the pages of memory of the host: a `MappedMemory` if ``mapped``, else a `PinnedMemory`."""

    @abc.abstractmethod
    def initialize(self) -> None:
        """Prepare for the first allocation."""

    @abc.abstractmethod
    def get_ipc_handle(self, memory: Any) -> Any:
        """Give an `IpcHandle` of memory."""

    @abc.abstractmethod
    def get_memory_info(self) -> Any:
        """Give free and total bytes as a `MemoryInfo`; ``NotImplementedError`` if that is not known."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Free all memory."""

    @abc.abstractmethod
    def defer_cleanup(self) -> AbstractContextManager[Any]:
        """Give a context in which no memory is freed, or none that waits for the device."""

    @property
    @abc.abstractmethod
    def interface_version(self) -> int:
        """1."""


class HostOnlyCUDAMemoryManager(BaseCUDAMemoryManager):
    """A manager that leaves memory of the host to weft: the base for those that only allocate on the device.

    ``allocations`` is a dictionary for the subclass's own use, which `reset` empties; ``deallocations`` is what waits
    for the device.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.allocations: dict[Any, Any] = {}
        # The check whether a class can be a manager uses an instance without a context.
        self.deallocations: Any = None if self.context is None else self.context.deallocations

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False, wc: bool = False) -> Any:  # noqa: ARG002
        """See `Context.memhostalloc`."""
        return allocate_host(self.context, size, mapped)

    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool = False) -> Any:
        """See `Context.mempin`."""
        return lock_host(self.context, owner, pointer, size, mapped)

    def memallocmanaged(self, size: int, attach_global: bool = True) -> Any:
        """See `Context.memallocmanaged`."""
        return allocate_managed(self.context, size, attach_global)

    def reset(self) -> None:
        """Free the memory that waits for the device, and forget all allocations."""
        self.deallocations.clear()
        self.allocations.clear()

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Do nothing: freeing memory waits for nothing."""
        yield


class GetIpcHandleMixin:
    """`get_ipc_handle` of memory that the driver allocated."""

    def get_ipc_handle(self, memory: Any) -> IpcHandle:
        """Let other processes open memory, while this one holds it."""
        from weft.cuda._memory.ipc import handle_of

        return handle_of(memory.context, memory)


class NumbaCUDAMemoryManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """Pass it to ``cuda.set_memory_manager`` to let weft allocate again.

    As a base of other managers it allocates what other processes can open, without the driver's pool.
    """

    def initialize(self) -> None:
        """Do nothing."""

    def memalloc(self, size: int) -> Any:
        """Allocate memory of the device."""
        return _allocate(self.context, size)

    def get_memory_info(self) -> MemoryInfo:
        """Free and total memory of the device in bytes."""
        return MemoryInfo(*_weft.memory_info(self.context.device.id))

    @property
    def interface_version(self) -> int:
        """1."""
        return INTERFACE_VERSION


_lock = threading.RLock()
# The current manager class, and its instance for each device.
_class: type[BaseCUDAMemoryManager] | None = None
_managers: dict[int, Any] = {}


def set_memory_manager(mm_plugin: type[BaseCUDAMemoryManager]) -> None:
    """Set the memory manager class that allocates the memory of device arrays from now on.

    Memory that was allocated before returns to its own manager. Pass `NumbaCUDAMemoryManager` to use weft's again.

    Parameters
    ----------
    mm_plugin
        A subclass of `BaseCUDAMemoryManager`; its constructor takes a ``context`` by keyword.

    Raises
    ------
    TypeError
        ``mm_plugin`` is not a class.
    RuntimeError
        It is of another version of the interface than 1.

    Examples
    --------
    >>> from rmm.allocators.numba import RMMNumbaManager  # doctest: +SKIP
    >>> cuda.set_memory_manager(RMMNumbaManager)  # doctest: +SKIP
    """
    global _class

    if not isinstance(mm_plugin, type):
        msg = f"mm_plugin must be a memory manager class, not {type(mm_plugin).__name__}"
        raise TypeError(msg)
    _check_version(mm_plugin(context=None))
    with _lock:
        _class = mm_plugin
        _managers.clear()
        _weft.use_memory_managers(mm_plugin is not NumbaCUDAMemoryManager)


def _check_version(manager: Any) -> None:
    if manager.interface_version != INTERFACE_VERSION:
        msg = (
            f"EMM Plugin interface has version {manager.interface_version} - version {INTERFACE_VERSION} required: "
            f"{type(manager).__name__}"
        )
        raise RuntimeError(msg)


def _named() -> type[BaseCUDAMemoryManager]:
    """Give the class that the setting names."""
    import importlib

    name = _weft.memory_managers()[1]
    if name is None:
        # Only another device has a manager instance.
        return NumbaCUDAMemoryManager
    try:
        found: type[BaseCUDAMemoryManager] = importlib.import_module(name)._numba_memory_manager
    except Exception as error:
        msg = (
            f"WEFT_MEMORY_MANAGER (or NUMBA_CUDA_MEMORY_MANAGER) is {name!r}, which does not provide a memory manager: "
            f"{error}"
        )
        raise RuntimeError(msg) from error
    return found


def manager_of(device: int) -> Any:
    """Give a device's manager, made and initialized at the first call."""
    from weft.cuda._devices import Device

    found = _managers.get(device)
    if found is not None:
        return found
    with _lock:
        if device not in _managers:
            made = (_class or _named())(context=Context(Device(device)))
            _check_version(made)
            made.initialize()
            _managers[device] = made
        return _managers[device]


def set_manager_of(device: int, manager: Any) -> None:
    """Set the manager of one device; None is weft, or what `set_memory_manager` says."""
    if manager is not None:
        _check_version(manager)
        manager.initialize()
    with _lock:
        _managers.pop(device, None)
        if manager is not None:
            _managers[device] = manager
        for_all = _weft.memory_managers()[1] is not None if _class is None else _class is not NumbaCUDAMemoryManager
        _weft.use_memory_managers(bool(_managers) or for_all)


def allocate(device: int, nbytes: int) -> tuple[int, Any]:
    """Allocate for weft: the address, and what holds the memory. Executors call it."""
    pointer = manager_of(device).memalloc(nbytes)
    if not hasattr(pointer, "device_pointer"):
        msg = f"`memalloc` of a memory manager must return a MemoryPointer, not {type(pointer).__name__}"
        raise TypeError(msg)
    return address_of(pointer.device_pointer), pointer
