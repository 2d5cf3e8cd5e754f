"""Copies between device arrays and NumPy arrays that are recorded for a graph: see `cuda.graph`.

Each launch of the graph copies what is in the memory then, so what is recorded is the user's own array, never a copy of
it. A mapped array is memory of the device, too, and is copied there.
"""

from __future__ import annotations

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, squeezed, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np


def record_to_host(array: DeviceNDArray, ary: np.ndarray[Any, Any], stream: Any) -> None:
    """Record a copy into an array of the host, of the same dtype.

    Raises
    ------
    ValueError
        It has another shape, or its elements are in another order.
    """
    host, mapped = _views(array, ary)
    if mapped is None:
        _weft.record_host_copy(array, host, _address(host), host.strides, stream or array.stream, to_host=True)
    else:
        write(mapped, array, stream or array.stream)


def record_to_device(array: DeviceNDArray, ary: np.ndarray[Any, Any], stream: Any) -> None:
    """Record a copy of an array of the host, of the same dtype.

    Raises
    ------
    ValueError
        It has another shape, or its elements are in another order.
    """
    host, mapped = _views(array, ary)
    if mapped is None:
        _weft.record_host_copy(array, host, _address(host), host.strides, stream or array.stream, to_host=False)
    else:
        write(array, mapped, stream)


def _views(array: DeviceNDArray, ary: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], DeviceNDArray | None]:
    """Give the array of the host in the device array's shape; and the same on the device, if it is mapped."""
    if squeezed(ary.shape) != squeezed(array.shape):
        msg = (
            f"`ary`, the host array, must have the shape {array.shape} while a graph is recorded, not "
            f"{ary.shape}: the copy is a node of the graph, which cannot broadcast elements"
        )
        raise ValueError(msg)
    # Only axes of extent 1 are added or removed, so it is a view.
    host = ary.reshape(array.shape)
    return host, getattr(host, "_weft_device_array", None)


def _address(host: np.ndarray[Any, Any]) -> int:
    address: int = host.__array_interface__["data"][0]
    return address
