"""Copies between memory of the host and memory by its pointers: numba-cuda's functions of its driver module.

Device memory is a `MemoryPointer` or what is made of one, a device array, or a mapped array of the host. A copy
copies a number of bytes from the first one on; without a stream it uses the default one.
"""

from __future__ import annotations

import ctypes

from weft import _weft
from weft.cuda._memory import observed
from weft.cuda._memory.pointers import MemoryPointer, OwnedPointer, address_of, of_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft.cuda._memory.device_array import DeviceNDArray


def is_device_memory(obj: Any) -> bool:
    """Whether an object is memory of a device: a pointer, a device array, or an array that is mapped."""
    return isinstance(on_device(obj), (MemoryPointer, OwnedPointer, _weft.DeviceArrayBase))


def on_device(obj: Any) -> Any:
    """Give a mapped array as the device sees it, and everything else as it is."""
    mapped = getattr(obj, "_weft_device_array", None)
    return obj if mapped is None else mapped


def require_device_memory(obj: Any) -> None:
    """Raise a ``TypeError`` for what is not memory of a device."""
    if not is_device_memory(obj):
        msg = f"not device memory: {type(obj).__name__}"
        raise TypeError(msg)


def device_memory_size(devmem: Any) -> int:
    """Give how many bytes memory of a device has."""
    require_device_memory(devmem)
    devmem = on_device(devmem)
    if isinstance(devmem, _weft.DeviceArrayBase):
        low, high = devmem.span
        return high - low
    size: int = devmem.size
    return size


def host_memory_extents(obj: Any) -> tuple[int, int]:
    """Give the addresses where an object of the host with a buffer begins and ends."""
    import numpy as np

    if isinstance(obj, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(obj) if hasattr(np.lib, "array_utils") else np.byte_bounds(obj)  # type: ignore[attr-defined]
        return int(low), int(high)
    view = memoryview(obj)
    start = ctypes.addressof(obj) if isinstance(obj, (ctypes.Structure, ctypes._SimpleCData)) else _address(view)
    return start, start + view.nbytes


def host_memory_size(obj: Any) -> int:
    """Give how many bytes an object of the host with a buffer spans."""
    start, end = host_memory_extents(obj)
    return end - start


def host_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copy bytes of an object with a buffer, or from an address, to memory of a device."""
    to = _bytes_on_device(dst, size)
    with observed.writing(to, observed.UNSEEN, "`host_to_device`", stream):
        _weft.copy_to_device(to, _bytes_on_host(src, size, "src"), stream)


def device_to_host(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copy bytes of memory of a device to an object with a buffer, or to an address, and wait for them."""
    array = _bytes_on_device(src, size)
    _weft.copy_to_host(array.device, array.address, _bytes_on_host(dst, size, "dst"), stream)


def device_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copy bytes within the memory of a device."""
    to = _bytes_on_device(dst, size)
    with observed.writing(to, observed.UNSEEN, "`device_to_device`", stream):
        _weft.copy_on_device(to, _bytes_on_device(src, size), stream)


def device_memset(dst: Any, val: int, size: int, stream: Any = 0) -> None:
    """Set bytes of memory of a device."""
    dst = on_device(dst)
    pointer = of_array(dst) if isinstance(dst, _weft.DeviceArrayBase) else dst
    require_device_memory(pointer)
    pointer.memset(val, size, stream)


def storage_of(memory: Any) -> tuple[Any, int, int]:
    """Give what keeps memory of a device alive, the address of its first byte, and the number of the device."""
    if isinstance(memory, _weft.DeviceArrayBase):
        return memory.owner, memory.address + memory.span[0], memory.device
    memory._check_alive()
    # weft's own memory records the streams that use it.
    return memory._memory() or memory, address_of(memory.device_pointer), memory.context.device.id


def _bytes_on_device(memory: Any, size: int) -> DeviceNDArray:
    import numpy as np

    from weft.cuda._memory.device_array import array_at

    memory = on_device(memory)
    if not 0 <= size <= device_memory_size(memory):
        msg = f"size must be a number of bytes from 0 to {device_memory_size(memory)}, got {size}"
        raise ValueError(msg)
    owner, address, device = storage_of(memory)
    return array_at(owner, address, (size,), (1,), np.dtype(np.uint8), device)


def _bytes_on_host(obj: Any, size: int, name: str) -> Any:
    """Return a number of bytes of an object with a buffer, or from an address on, as an array."""
    import numpy as np

    if hasattr(obj, "__index__") and not hasattr(obj, "__array_interface__"):
        start = obj.__index__()
    else:
        start, end = host_memory_extents(obj)
        if size > end - start:
            msg = f"{name} has {end - start} bytes, but {size} bytes are to be copied"
            raise ValueError(msg)
    return (
        np.frombuffer(memoryview((ctypes.c_ubyte * size).from_address(start)), np.uint8)
        if size
        else np.empty(0, np.uint8)
    )


def _address(view: memoryview) -> int:
    import numpy as np

    address: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return address
