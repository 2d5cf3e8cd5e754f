"""Device arrays, as numba-cuda's module of this name has them."""

from __future__ import annotations

from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.ipc import IpcArrayHandle
from weft.cuda._memory.making import auto_device
from weft.cuda._memory.making import is_cuda_array as is_cuda_ndarray
from weft.cuda._memory.mapped import ManagedNDArray, MappedNDArray
from weft.cuda._memory.record import DeviceRecord

__all__ = [
    "DeviceNDArray",
    "DeviceRecord",
    "IpcArrayHandle",
    "ManagedNDArray",
    "MappedNDArray",
    "auto_device",
    "is_cuda_ndarray",
]
