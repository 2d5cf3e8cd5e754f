"""Device arrays, as numba-cuda's module of this name has them."""

from __future__ import annotations

from weft.cuda._memory.device_array import DeviceNDArray, DeviceRecord
from weft.cuda._memory.making import is_cuda_array as is_cuda_ndarray

__all__ = ["DeviceNDArray", "DeviceRecord", "is_cuda_ndarray"]
