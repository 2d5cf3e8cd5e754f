"""Devices, contexts, memory, streams and events, as numba-cuda's module of this name has them."""

from __future__ import annotations

from weft.cuda._code.modules import FuncAttr, Function, Module, launch_kernel
from weft.cuda._contexts import Context, MemoryInfo
from weft.cuda._devices import Device, Versions
from weft.cuda._memory.ipc import IpcHandle
from weft.cuda._memory.manager import (
    BaseCUDAMemoryManager,
    GetIpcHandleMixin,
    HostOnlyCUDAMemoryManager,
    NumbaCUDAMemoryManager,
    set_memory_manager,
)
from weft.cuda._memory.pointers import (
    AutoFreePointer,
    ManagedMemory,
    MappedMemory,
    MemoryPointer,
    OwnedPointer,
    PinnedMemory,
    device_extents,
)
from weft.cuda._memory.transfers import (
    device_memory_size,
    device_memset,
    device_to_device,
    device_to_host,
    host_memory_extents,
    host_memory_size,
    host_to_device,
    is_device_memory,
    require_device_memory,
)
from weft.cuda._streams import Event, Stream
from weft.errors import CudaAPIError, CudaDriverError, CudaSupportError

__all__ = [
    "AutoFreePointer",
    "BaseCUDAMemoryManager",
    "Context",
    "CudaAPIError",
    "CudaDriverError",
    "CudaSupportError",
    "Device",
    "Event",
    "FuncAttr",
    "Function",
    "GetIpcHandleMixin",
    "HostOnlyCUDAMemoryManager",
    "IpcHandle",
    "ManagedMemory",
    "MappedMemory",
    "MemoryInfo",
    "MemoryPointer",
    "Module",
    "NumbaCUDAMemoryManager",
    "OwnedPointer",
    "PinnedMemory",
    "Stream",
    "device_extents",
    "device_memory_size",
    "device_memset",
    "device_to_device",
    "device_to_host",
    "driver",
    "host_memory_extents",
    "host_memory_size",
    "host_to_device",
    "is_device_memory",
    "launch_kernel",
    "require_device_memory",
    "set_memory_manager",
]

driver = Versions()
