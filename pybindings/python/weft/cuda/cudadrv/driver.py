"""Devices, streams and events, as numba-cuda's module of this name has them."""

from __future__ import annotations

from weft.cuda._devices import Context, Device, Versions
from weft.cuda._streams import Event, Stream
from weft.errors import CudaAPIError, CudaDriverError, CudaSupportError

__all__ = ["Context", "CudaAPIError", "CudaDriverError", "CudaSupportError", "Device", "Event", "Stream", "driver"]

driver = Versions()
