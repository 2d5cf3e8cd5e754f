"""Barriers in shared memory, and the copies that they count, for kernels that CPython runs.

A copy is made as late as possible: where a thread waits for a phase in which only bytes are missing.
"""

from __future__ import annotations

import numpy as np

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import array
from weft.cuda._cpython.names import NAMES, meet, site
from weft.cuda._cpython.warps import Collective, nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Copy = tuple[np.ndarray, np.ndarray]

# The alignment of copies of arrays in bytes.
_ALIGN = 16


class Barrier:
    """A barrier: the arrivals and bytes that its phase waits for, and the copies that are not made yet."""

    def __init__(self, count: int) -> None:
        self.count = self.missing = int(count)
        self.phase = self.bytes = 0
        self.copies: list[Copy] = []
        self.waiting: list[threads.Thread] = []

    def arrive(self) -> None:
        """Arrive."""
        self._arrive(0)

    def expect(self, bytes: int) -> None:
        """Arrive; the phase waits for bytes of copies, too."""
        self._arrive(int(bytes))

    def wait(self, phase: int) -> None:
        """Wait until a phase has completed."""
        while True:
            self._complete_by_copies()
            if self.phase & 1 != int(phase) & 1:
                return
            self.waiting.append(threads.current())
            meet(Collective("phase", "wait", site(), nothing))

    def _arrive(self, expected: int) -> None:
        if self.missing == 0:
            self._complete_by_copies()
        self.bytes += expected
        self.missing = max(self.missing - 1, 0)
        if self.waiting:
            self._complete_by_copies()
        self._complete()

    def begin(self, copy: Copy) -> None:
        """Begin a copy."""
        self.copies.append(copy)
        self._resume()

    def _complete_by_copies(self) -> None:
        if self.missing == 0 and self.bytes > 0:
            while self.bytes > 0 and self.copies:
                to, source = self.copies.pop(0)
                to[...] = source
                self.bytes -= to.nbytes
            self._complete()

    def _complete(self) -> None:
        if self.missing == 0 and self.bytes == 0:
            self.phase += 1
            self.missing = self.count
            self._resume()

    def _resume(self) -> None:
        scheduler = threads.current().launch.scheduler
        if scheduler is not None and self.waiting:
            scheduler.resume(self.waiting)
            self.waiting = []


class BoxMap:
    """A tensor map: an array, and the shape of its boxes."""

    def __init__(self, given: np.ndarray, box: tuple[int, ...]) -> None:
        self.array, self.box = given, box

    def __getitem__(self, index: Any) -> Box:
        first = index if isinstance(index, tuple) else (index,)
        if len(first) != len(self.box):
            msg = f"a box has {len(self.box)} indices, not {len(first)}"
            raise IndexError(msg)
        if int(first[-1]) * self.array.itemsize % _ALIGN:
            msg = "the index of a box along the last dimension must be a multiple of 16 bytes"
            raise ValueError(msg)
        return Box(self, tuple(int(each) for each in first))


class Box:
    """A box of an array."""

    def __init__(self, of: BoxMap, first: tuple[int, ...]) -> None:
        self.of, self.first = of, first

    def elements(self) -> np.ndarray:
        """Give its elements; those outside of the array are zero."""
        given, size = self.of.array, self.of.box
        made = np.zeros(size, given.dtype)
        lower = [max(-first, 0) for first in self.first]
        upper = [
            max(min(extent - first, length), low)
            for first, extent, length, low in zip(self.first, given.shape, size, lower, strict=True)
        ]
        inside = tuple(slice(low, high) for low, high in zip(lower, upper, strict=True))
        from_ = tuple(
            slice(first + low, first + high) for first, low, high in zip(self.first, lower, upper, strict=True)
        )
        if all(low < high for low, high in zip(lower, upper, strict=True)):
            made[inside] = given[from_]
        return made


class _Late:
    """The source of a copy of a box, whose elements are read where the copy is made."""

    def __init__(self, box: Box, shape: tuple[int, ...]) -> None:
        self.box, self.shape = box, shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        del copy
        made = self.box.elements().reshape(self.shape)
        return made if dtype is None else made.astype(dtype)


def bulk_copy(to: Any, source: Any, bar: Any) -> None:
    """Begin a copy that a barrier counts.

    Raises
    ------
    TypeError
        The arrays have different types.
    ValueError
        They have different sizes, or sizes that are no multiple of 16 bytes.
    """
    if not isinstance(bar, Barrier):
        msg = f"cuda.copy_async takes a barrier, not {type(bar).__name__}"
        raise TypeError(msg)
    plain = np.asarray(to)
    given = source.of.array if isinstance(source, Box) else np.asarray(source)
    size = int(np.prod(source.of.box)) if isinstance(source, Box) else given.size
    if plain.dtype != given.dtype:
        msg = f"cuda.copy_async copies between arrays of one type, not from {given.dtype} to {plain.dtype}"
        raise TypeError(msg)
    if plain.size != size:
        msg = f"cannot reshape array of size {size} into a shape of {plain.size} elements"
        raise ValueError(msg)
    addresses = [plain.nbytes] if isinstance(source, Box) else [plain.nbytes, given.ctypes.data]
    if any(each % _ALIGN for each in addresses):
        msg = "the addresses and the size of an asynchronous copy must be multiples of 16 bytes"
        raise ValueError(msg)
    late: Any = _Late(source, plain.shape) if isinstance(source, Box) else given.reshape(plain.shape)
    bar.begin((plain, late))


def barrier(count: int, n: int | None = None) -> Any:
    """Return the block's barriers of this call in the kernel."""
    block, key = threads.current().block, site()[:2]
    if key not in block.barriers:
        block.barriers[key] = Barrier(count) if n is None else [Barrier(count) for _ in range(n)]
    meet(Collective("block", "barrier", site(), nothing))
    return block.barriers[key]


NAMES["weft.cuda.barrier"] = barrier


def map_argument(value: Any) -> BoxMap:
    """Give a tensor map as a kernel has it."""
    from weft.cuda._cpython.arguments import argument

    return BoxMap(np.asarray(array(np.asarray(argument(value.array)))), value.box)
