"""A replacement for CuPy: `cupy.ndarray` over any address, whose attributes and interface count how often they are
read.

`install` adds the parts of `cupy` and `cupy_backends.cuda.stream` that weft uses to `sys.modules`, so tests call it in
a separate process. `use` makes a stream the calling thread's current one, as `with cupy.cuda.Stream()` does.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import Counter
from types import ModuleType
from typing import Any

from foreign_tensors import new_capsule

READS: Counter[str] = Counter()
INTERFACE = "__cuda_array_interface__"

_CURRENT = threading.local()
# The version of the interface: `CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION`.
VERSION = [3]


def use(stream: int) -> None:
    """Make a stream the thread's current one; 0 is the null stream."""
    _CURRENT.stream = stream


def _counted(read: Any) -> Any:
    def counted(self: Any) -> Any:
        READS[read.__name__] += 1
        return read(self)

    return property(counted)


class MemoryPointer:
    def __init__(self, address: int) -> None:
        self.address = address

    @_counted
    def ptr(self) -> int:
        return self.address


class ndarray:
    """An array with the shape, strides and dtype of NumPy's array `like`, at an address (default: that of `like`)."""

    def __init__(self, like: Any, address: int | None = None) -> None:
        self.like = like
        self.memory = MemoryPointer(like.ctypes.data if address is None else address)

    @_counted
    def data(self) -> Any:
        return self.memory

    @_counted
    def dtype(self) -> Any:
        return self.like.dtype

    @_counted
    def _c_contiguous(self) -> bool:
        return bool(self.like.flags.c_contiguous)

    @_counted
    def ndim(self) -> int:
        return int(self.like.ndim)

    @_counted
    def size(self) -> int:
        return int(self.like.size)

    @_counted
    def shape(self) -> tuple[int, ...]:
        return tuple(self.like.shape)

    @_counted
    def strides(self) -> tuple[int, ...]:
        return tuple(self.like.strides)

    @_counted
    def __cuda_array_interface__(self) -> dict[str, Any]:
        like = self.like
        interface = {
            "shape": tuple(like.shape),
            "typestr": like.dtype.str,
            "descr": like.dtype.descr,
            "version": VERSION[0],
            "strides": None if like.flags.c_contiguous else tuple(like.strides),
            "data": (self.memory.address if like.size else 0, False),
        }
        if VERSION[0] == 3:
            interface["stream"] = getattr(_CURRENT, "stream", 0) or 1
        return interface


@ctypes.PYFUNCTYPE(ctypes.c_ssize_t)
def _current_stream() -> int:
    READS["stream"] += 1
    return int(getattr(_CURRENT, "stream", 0))


def install(signature: bytes = b"intptr_t (void)") -> None:
    """Add the modules to `sys.modules`; the signature is the C function's."""
    ndarray.__module__, ndarray.__qualname__ = "cupy", "ndarray"
    cupy, streams = ModuleType("cupy"), ModuleType("cupy_backends.cuda.stream")
    cupy.ndarray = ndarray  # type: ignore[attr-defined]
    address = ctypes.cast(_current_stream, ctypes.c_void_p).value
    streams.__pyx_capi__ = {  # type: ignore[attr-defined]
        "get_current_stream_ptr": new_capsule(address, signature, None)
    }
    sys.modules["cupy"], sys.modules["cupy_backends.cuda.stream"] = cupy, streams
