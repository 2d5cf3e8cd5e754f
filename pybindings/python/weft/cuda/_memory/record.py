"""Records in device memory: device arrays without axes, which kernels take as records."""

from __future__ import annotations

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np


class DeviceRecord(DeviceNDArray):
    """A record in device memory: `cuda.to_device` of a NumPy record, or an element of a device array of records.

    Kernels take it as a record. A field is read and written by its name; arrays and records in it are views.
    """

    def __new__(cls, dtype: Any, stream: Any = 0, gpu_data: Any = None) -> Self:
        """Make a record, with undefined contents in new memory, or in memory that there is; see `DeviceNDArray`."""
        from weft.cuda._memory.making import storage_of_layout

        owner, address, _, _, dtype, device, readonly = storage_of_layout((), (), dtype, stream, gpu_data)
        record = cls.at(owner, address, dtype, device, readonly=readonly)
        if stream:
            record.stream = stream
        return record

    @classmethod
    def at(cls, owner: Any, address: int, dtype: Any, device: int, *, readonly: bool = False) -> Self:
        """Make the record at an address in the memory of `owner`."""
        if not dtype.names:
            msg = f"{dtype} is not a record dtype"
            raise TypeError(msg)
        return _weft.DeviceArrayBase.__new__(cls, owner, address, (), (), dtype, device, readonly, record=True)

    def __repr__(self) -> str:
        return f"<weft.cuda.DeviceRecord dtype={self.dtype} device={self.device}>"

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """Copy to the host: to a record of the same dtype, or to a new one."""
        import numpy as np

        if ary is None:
            return read(self, stream)[()]
        # A NumPy array of a record shares the record's memory.
        super().copy_to_host(np.asarray(ary), stream)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy a record of the host or of the device into this one."""
        import numpy as np

        super().copy_to_device(ary if isinstance(ary, DeviceNDArray) else np.asarray(ary), stream)

    def bind(self, stream: Any = 0) -> DeviceRecord:
        """Make the same record with a stream of its own for copies."""
        clone = self._record(self.address, self.dtype)
        clone.stream = stream
        return clone

    def copy(self, order: Any = "C", stream: Any = 0) -> DeviceRecord:  # noqa: ARG002
        """Make a copy on the device."""
        record = DeviceRecord(self.dtype, stream or self.stream)
        write(record, self, stream)
        return record

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Copy a number of a field to the host, or make a view of an array or record in a field."""
        if not isinstance(item, str):
            return super().getitem(item, stream)
        dtype, offset = self._field(item)
        if dtype.names:
            return self._record(self.address + offset, dtype)
        if dtype.shape:
            return self._field_view(item)
        # Read bytes and view them as the dtype, which also works for strings.
        view = self._view(self.address + offset, [dtype.itemsize], [1], "u1")
        return read(view, stream).view(dtype)[0]

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Write a field, or with ``...`` the whole record."""
        import numpy as np

        if not isinstance(key, str):
            super().setitem(key, value, stream)
            return
        dtype, offset = self._field(key)
        host: np.ndarray[Any, Any] = np.empty(1, np.dtype([("field", dtype)]))
        host["field"] = value.copy_to_host() if isinstance(value, DeviceNDArray) else value
        write(self._view(self.address + offset, [dtype.itemsize], [1], "u1"), host.view("u1"), stream)
