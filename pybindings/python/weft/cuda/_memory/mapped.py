"""NumPy's arrays in memory that host and device share. Imported when the first of them is made, because of NumPy."""

from __future__ import annotations

import numpy as np

from weft.cuda._memory.device_array import DeviceNDArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import HostMemory


class Block:
    """Memory as NumPy takes it: bytes, which it keeps as long as an array is in them."""

    def __init__(self, memory: HostMemory) -> None:
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface."""
        data = (self._memory.address, False)
        return {"version": 3, "shape": (max(self._memory.nbytes, 1),), "typestr": "|u1", "data": data}


class MappedNDArray(np.ndarray):
    """A NumPy array that kernels take without a copy. It has a device array's methods beside NumPy's."""

    stream: Any = 0
    _memory: HostMemory | None = None

    def __array_finalize__(self, made_from: Any) -> None:
        """Remember the memory: a view has its elements there, what NumPy computes has not."""
        self._memory = getattr(made_from, "_memory", None)
        self.stream = getattr(made_from, "stream", 0)

    @property
    def _weft_device_array(self) -> DeviceNDArray | None:
        """The array as kernels see it; None where it is in memory of its own."""
        memory = self._memory
        start = self.__array_interface__["data"][0] - memory.address if memory else -1
        if memory is None or not 0 <= start < max(memory.nbytes, 1):
            return None
        address, readonly = memory.device_address + start, not self.flags.writeable
        array = DeviceNDArray(self, address, self.shape, self.strides, self.dtype, memory.device, readonly)
        if self.stream:
            array.stream = self.stream
        return array

    def __getattr__(self, name: str) -> Any:
        """Give what NumPy's arrays do not have and a device array has."""
        array = None if name.startswith("_") and name != "__cuda_array_interface__" else self._weft_device_array
        if array is None:
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(array, name)


class ManagedNDArray(MappedNDArray):
    """The same in memory that moves to where it is used."""
