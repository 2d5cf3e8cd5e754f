"""Asynchronous copies, for kernels that CPython runs: made where their thread waits for them, as on the CPU device."""

from __future__ import annotations

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Vectors
from weft.cuda._cpython.barriers import Store, bulk_copy
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


def copy_async(to: Any, *given: Any, multicast: Any = None) -> None:
    """Begin to copy an element, an array or box with a barrier, or an array to global memory."""
    thread = threads.current()
    if len(given) == 1:
        thread.copies.append(Store(to, *given))
    elif len(given) == 2:
        source, bar = given
        bulk_copy(to, source, bar, multicast)
    else:
        i, source, j = given
        if _is_asynchronous(to, source, thread):
            thread.copies.append((to, i, source, j))
        else:
            to[i] = source[j]


def copy_commit() -> None:
    """Make a group of the thread's copies."""
    thread = threads.current()
    thread.groups.append(thread.copies)
    thread.copies = []


def copy_wait(pending: int = 0, read: bool = False) -> None:
    """Complete all groups but the latest ones; of copies to global memory only their reads, if `read`."""
    groups = threads.current().groups
    if read:
        for group in groups[: max(len(groups) - pending, 0)]:
            stores = [copy for copy in group if isinstance(copy, Store)]
            _make([copy for copy in group if not isinstance(copy, Store)])
            for store in stores:
                store.read()
            group[:] = stores
        return
    while len(groups) > pending:
        _make(groups.pop(0))


def _make(group: list[Any]) -> None:
    for copy in group:
        if isinstance(copy, Store):
            copy.write()
        else:
            to, i, source, j = copy
            to[i] = source[j]


def end_thread() -> None:
    """Make the copies to global memory whose sources the thread has waited for."""
    thread = threads.current()
    for group in thread.groups:
        _make([copy for copy in group if isinstance(copy, Store) and copy.elements is not None])


for _function in (copy_async, copy_commit, copy_wait):
    NAMES[f"weft.cuda.{_function.__name__}"] = _function
