"""Errors, as numba-cuda's module of this name has them."""

from __future__ import annotations

from weft.errors import CudaDriverError, CudaSupportError, LinkerError

__all__ = ["CudaDriverError", "CudaSupportError", "LinkerError"]
