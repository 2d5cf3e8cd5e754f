"""Asynchronous copies, for kernels that CPython runs: made where their thread waits for them, as on the CPU device."""

from __future__ import annotations

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Vectors
from weft.cuda._cpython.barriers import bulk_copy
from weft.cuda._cpython.names import NAMES, base_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The sizes of elements that a GPU copies asynchronously, in bytes.
_SIZES = (4, 8, 16)


def _size(array: Any) -> int:
    """Give the size of an element, which may be a vector."""
    if isinstance(array, Vectors):
        return int(array.numbers.itemsize * array.numbers.shape[-1])
    return int(array.dtype.itemsize)


def _is_asynchronous(to: Any, source: Any, thread: threads.Thread) -> bool:
    if _size(to) not in _SIZES:
        return False
    block = thread.block
    shared = [block.dynamic, *(base_of(array) for array in block.arrays.values())]
    given, own = base_of(source), base_of(to)
    return any(own is base for base in shared) and not any(given is base for base in (*shared, *block.own))


def copy_async(to: Any, i: Any, source: Any, *j: Any) -> None:
    """Begin to copy an element, or an array or box with a barrier: `copy_async(to, source, bar)`."""
    if not j:
        bulk_copy(to, i, source)
        return
    thread = threads.current()
    if _is_asynchronous(to, source, thread):
        thread.copies.append((to, i, source, *j))
    else:
        to[i] = source[j[0]]


def copy_commit() -> None:
    """Make a group of the thread's copies."""
    thread = threads.current()
    thread.groups.append(thread.copies)
    thread.copies = []


def copy_wait(pending: int = 0) -> None:
    """Complete all groups but the latest ones."""
    groups = threads.current().groups
    while len(groups) > pending:
        for to, i, source, j in groups.pop(0):
            to[i] = source[j]


for _function in (copy_async, copy_commit, copy_wait):
    NAMES[f"weft.cuda.{_function.__name__}"] = _function
