"""Host memory that ends at unmapped or protected pages, and a test for memory of other kinds."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# An address at which the system does not map memory by itself: otherwise a thread's stack could be mapped into memory
# that a test has unmapped.
APART = 1 << 44
FIXED_NOREPLACE, READ_WRITE, PRIVATE_ANONYMOUS = 0x100000, 3, 0x22

BEHIND = 64 * mmap.PAGESIZE


@contextlib.contextmanager
def at_an_end(elements: int) -> Iterator[tuple[Any, Callable[[bool], None]]]:
    """An array of float64 followed by `BEHIND` bytes, and a function that unmaps or protects those bytes.

    The memory may be protected after it was unmapped. `elements` fill whole pages, or the memory after them starts
    within one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size = ctypes.c_size_t(elements * 8 + BEHIND)
    flags = PRIVATE_ANONYMOUS | FIXED_NOREPLACE
    start = libc.mmap(ctypes.c_void_p(APART), size, READ_WRITE, flags, -1, ctypes.c_long(0))
    assert start == APART, ctypes.get_errno()
    end = ctypes.c_void_p(start + elements * 8)

    def change(protect: bool) -> None:
        if not protect:
            assert libc.munmap(end, ctypes.c_size_t(BEHIND)) == 0
        elif libc.mprotect(end, ctypes.c_size_t(BEHIND), 0) != 0:
            assert libc.mmap(end, ctypes.c_size_t(BEHIND), 0, flags, -1, ctypes.c_long(0)) == end.value

    try:
        yield np.frombuffer((ctypes.c_char * (elements * 8)).from_address(start), np.float64), change
    finally:
        libc.munmap(ctypes.c_void_p(start), size)


class AtTheEnd:
    """An array whose last element is the last one before inaccessible memory."""

    def __init__(self, array: np.ndarray) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        pages = -(-max(array.nbytes, 1) // mmap.PAGESIZE)
        self.memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        end = start + pages * mmap.PAGESIZE
        assert libc.mprotect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0, ctypes.get_errno()
        place = end - array.nbytes
        ctypes.memmove(place, array.ctypes.data, array.nbytes)
        self.array = np.frombuffer((ctypes.c_char * array.nbytes).from_address(place), array.dtype).reshape(array.shape)
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (place, False), "version": 3, "strides": None,
        }  # fmt: skip


def has_driver() -> bool:
    """Whether another library can have memory of a GPU."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
