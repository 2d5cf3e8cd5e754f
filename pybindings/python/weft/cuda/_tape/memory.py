"""The memory that a tape knows, by its addresses: contents that are saved, and adjoints."""

from __future__ import annotations

import numpy as np

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, array_at
from weft.cuda._memory.making import device_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The adjoint of an element has the element's address modulo this.
_ALIGNMENT = 256


def range_of(array: DeviceNDArray) -> tuple[int, int]:
    """Give the addresses where an array begins and ends."""
    low, high = array.span
    return array.address + low, array.address + high


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _bytes_at(owner: Any, address: int, count: int, device: int) -> DeviceNDArray:
    return array_at(owner, address, (count,), (1,), np.dtype(np.uint8), device)


class _Memory:
    """New memory for the bytes of a range of addresses, with their alignment."""

    def __init__(self, extent: tuple[int, int], device: int, stream: Any) -> None:
        self.low, high = extent
        offset = self.low % _ALIGNMENT
        self._memory = device_array(high - self.low + offset, np.uint8, stream=stream)
        self._first = self._memory.address + offset
        self._size = high - self.low
        self._device = device

    @property
    def bytes(self) -> DeviceNDArray:
        return _bytes_at(self._memory.owner, self._first, self._size, self._device)

    def view(self, array: DeviceNDArray) -> DeviceNDArray:
        """Give the array with the strides of an array in the range."""
        address = array.address - self.low + self._first
        return array_at(self._memory.owner, address, array.shape, array.strides, array.dtype, self._device)


class Contents:
    """The contents of a range of addresses at a time: there, or in a copy since something is written there."""

    def __init__(self, array: DeviceNDArray) -> None:
        self.extent = range_of(array)
        self._array = array
        self._saved: _Memory | None = None

    def save(self, stream: Any) -> None:
        low, high = self.extent
        self._saved = _Memory(self.extent, self._array.device, stream)
        own = _bytes_at(self._array.owner, low, high - low, self._array.device)
        _weft.copy_on_device(self._saved.bytes, own, stream)

    def view(self, array: DeviceNDArray) -> DeviceNDArray:
        return array if self._saved is None else self._saved.view(array)


class Adjoints:
    """The adjoints of all memory that the records of a tape access: one array of bytes for each range of addresses."""

    def __init__(self, arrays: list[DeviceNDArray], stream: Any) -> None:
        self._stream = stream
        self._ranges: list[tuple[int, int]] = []
        for low, high in sorted(map(range_of, arrays)):
            if self._ranges and low < self._ranges[-1][1]:
                self._ranges[-1] = self._ranges[-1][0], max(high, self._ranges[-1][1])
            elif low < high:
                self._ranges.append((low, high))
        self._memory: dict[tuple[int, int], _Memory] = {}
        self._kinds: dict[tuple[int, int], str] = {}
        for array in arrays:
            if (found := self.merged_range(array)) is None:
                continue
            kind = {"complex64": "float32", "complex128": "float64"}.get(str(array.dtype), str(array.dtype))
            if (other := self._kinds.setdefault(found, kind)) != kind:
                msg = f"views of one array with elements of {other} and of {kind} have no common adjoint"
                raise TypeError(msg)

    def merged_range(self, array: DeviceNDArray) -> tuple[int, int] | None:
        own = range_of(array)
        return next((found for found in self._ranges if overlap(found, own)), None)

    def has(self, array: DeviceNDArray) -> bool:
        """Whether the adjoint of memory that the array overlaps has contributions."""
        own = range_of(array)
        return any(overlap(own, found) for found in self._memory)

    def of(self, array: DeviceNDArray) -> DeviceNDArray:
        """Give the adjoint of an array, which is 0 at first."""
        found = self.merged_range(array)
        if found is None:
            # No elements.
            return device_array(array.shape, array.dtype, stream=self._stream)
        memory = self._memory.get(found)
        if memory is None:
            memory = self._memory[found] = _Memory(found, array.device, self._stream)
            memory.bytes.setitem(..., 0, self._stream)
        return memory.view(array)


def zeros_like(array: DeviceNDArray, stream: Any) -> DeviceNDArray:
    memory = _Memory(range_of(array), array.device, stream)
    memory.bytes.setitem(..., 0, stream)
    return memory.view(array)


def copied(array: DeviceNDArray, stream: Any) -> DeviceNDArray:
    from weft.cuda._memory.copies import compact

    return compact(array, "C", stream)


def add(to: DeviceNDArray, term: Any, stream: Any) -> None:
    from weft.cuda._ufunc.numpy_ufuncs import on_device

    on_device(np.add)(to, term, out=to, stream=stream)


def add_reduced(to: DeviceNDArray, term: DeviceNDArray, stream: Any) -> None:
    """Add a term to an array that broadcasts to it."""
    while term.ndim > to.ndim:
        term = term.sum(axis=0)
    for axis, extent in enumerate(to.shape):
        if extent != term.shape[axis]:
            term = term.sum(axis=axis, keepdims=True)
    if term.dtype.kind == "c" and to.dtype.kind != "c":
        term = term.real
    if term.dtype != to.dtype:
        term = term.astype(to.dtype)
    add(to, term, stream)
