"""Memory for arrays between inaccessible pages, with canaries on the side that does not touch such a page."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

ROOM = 32 * mmap.PAGESIZE  # of an array
CANARY = mmap.PAGESIZE
FILL = 0xA5


class Interface:
    """An array of another library, at any address; weft accesses its memory directly."""

    def __init__(self, place: int, dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": dtype.str, "data": (place, False), "version": 3, "strides": strides,
        }  # fmt: skip


class Guarded:
    """Memory with an inaccessible page before and after each part."""

    def __init__(self, count: int = 24) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.memory = mmap.mmap(-1, count * (ROOM + mmap.PAGESIZE) + mmap.PAGESIZE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.all = np.frombuffer(self.memory, np.uint8)
        for number in range(count + 1):
            page = ctypes.c_void_p(self.start + number * (ROOM + mmap.PAGESIZE))
            if self.libc.mprotect(page, ctypes.c_size_t(mmap.PAGESIZE), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.count = count

    def place(self, number: int, array: np.ndarray, *, at_end: bool) -> tuple[int, np.ndarray, np.ndarray]:
        """Copies an array into a part: its address, its bytes there, and the unused bytes next to it."""
        if number >= self.count or array.nbytes > ROOM:
            raise ValueError(f"{array.nbytes} bytes in room {number}")
        first = number * (ROOM + mmap.PAGESIZE) + mmap.PAGESIZE
        room = self.all[first : first + ROOM]
        begin = ROOM - array.nbytes if at_end else 0
        inside = room[begin : begin + array.nbytes]
        beside = room[max(begin - CANARY, 0) : begin] if at_end else room[array.nbytes : array.nbytes + CANARY]
        inside[...] = array.view(np.uint8)
        beside[...] = FILL
        return self.start + first + begin, inside, beside

    def view(self, place: int, dtype: np.dtype, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """An argument for a launch."""
        size = dtype.itemsize
        return Interface(place + offset * size, dtype, shape, tuple(stride * size for stride in strides))
