"""Barriers in shared memory, and the copies that they count, for kernels that CPython runs.

A copy is made as late as possible: where a thread waits for a phase in which only bytes are missing.
"""

from __future__ import annotations

import numpy as np

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import array
from weft.cuda._cpython.clusters import in_block
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
        self.is_synchronized = False  # with the other blocks of the cluster, since it was made

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


class Remote:
    """A barrier of another block of the cluster."""

    def __init__(self, of: Barrier | None) -> None:
        self.of = of

    def arrive(self) -> None:
        """Arrive."""
        self._barrier().arrive()

    def expect(self, bytes: int) -> None:
        """Arrive; the phase waits for bytes of copies, too."""
        self._barrier().expect(bytes)

    def _barrier(self) -> Barrier:
        block = threads.current().block
        synchronize(block)
        if self.of is None or not (self.of.is_synchronized or _is_in(self.of, block)):
            msg = "the other block has not made the barrier: call `cuda.cluster.sync()` after `cuda.barrier`"
            raise RuntimeError(msg)
        return self.of


def _barriers(block: threads.Block) -> list[Barrier]:
    return [each for made in block.barriers.values() for each in (made if isinstance(made, list) else [made])]


def _is_in(barrier: Barrier, block: threads.Block) -> bool:
    return any(each is barrier for each in _barriers(block))


def synchronize(block: threads.Block) -> None:
    """Let the other blocks of the cluster use the barriers that a block has made."""
    for each in _barriers(block):
        each.is_synchronized = True


def barrier_of(own: Barrier, other: threads.Block) -> Barrier | None:
    """Give the barrier of another block that has the key of an own one; None if there is none yet."""
    for key, made in threads.current().block.barriers.items():
        if made is own:
            return other.barriers.get(key)
        if isinstance(made, list) and own in made:
            return other.barriers[key][made.index(own)] if key in other.barriers else None
    return None


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
        made = np.zeros(self.of.box, self.of.array.dtype)
        if (parts := self._parts()) is not None:
            made[parts[0]] = self.of.array[parts[1]]
        return made

    def store(self, elements: np.ndarray) -> None:
        """Write its elements; those outside of the array are not written."""
        if (parts := self._parts()) is not None:
            self.of.array[parts[1]] = elements.reshape(self.of.box)[parts[0]]

    def _parts(self) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
        """Give what is inside of the array, in the box and in the array; None if nothing is."""
        given, size = self.of.array, self.of.box
        lower = [max(-first, 0) for first in self.first]
        upper = [
            max(min(extent - first, length), low)
            for first, extent, length, low in zip(self.first, given.shape, size, lower, strict=True)
        ]
        inside = tuple(slice(low, high) for low, high in zip(lower, upper, strict=True))
        from_ = tuple(
            slice(first + low, first + high) for first, low, high in zip(self.first, lower, upper, strict=True)
        )
        return (inside, from_) if all(low < high for low, high in zip(lower, upper, strict=True)) else None


class _Late:
    """The source of a copy of a box, whose elements are read where the copy is made."""

    def __init__(self, box: Box, shape: tuple[int, ...]) -> None:
        self.box, self.shape = box, shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        del copy
        made = self.box.elements().reshape(self.shape)
        return made if dtype is None else made.astype(dtype)


def _checked(plain: np.ndarray, other: Any) -> None:
    """Check an array of shared memory and what it is copied from or to."""
    given = other.of.array if isinstance(other, Box) else np.asarray(other)
    size = int(np.prod(other.of.box)) if isinstance(other, Box) else given.size
    if plain.dtype != given.dtype:
        msg = f"cuda.copy_async copies between arrays of one type, not of {given.dtype} and {plain.dtype}"
        raise TypeError(msg)
    if plain.size != size:
        msg = f"cannot reshape array of size {size} into a shape of {plain.size} elements"
        raise ValueError(msg)
    addresses = [plain.nbytes] if isinstance(other, Box) else [plain.nbytes, given.ctypes.data]
    if any(each % _ALIGN for each in addresses):
        msg = "the addresses and the size of an asynchronous copy must be multiples of 16 bytes"
        raise ValueError(msg)


class Store:
    """A copy to global memory that is not made yet."""

    def __init__(self, to: Any, source: Any) -> None:
        self.to, self.source = to, np.asarray(source)
        self.elements: np.ndarray | None = None
        _checked(self.source, to)
        if isinstance(to, Box) and min(to.first) < 0:
            msg = "the first indices of a box that is written must not be negative"
            raise ValueError(msg)

    def read(self) -> None:
        """Read the source."""
        if self.elements is None:
            self.elements = self.source.copy()

    def write(self) -> None:
        """Write what has been read, or else the source."""
        self.read()
        assert self.elements is not None
        if isinstance(self.to, Box):
            self.to.store(self.elements)
        else:
            plain = np.asarray(self.to)
            plain[...] = self.elements.reshape(plain.shape)


def bulk_copy(to: Any, source: Any, bar: Any, multicast: Any = None) -> None:
    """Begin a copy that a barrier counts, in each block of a mask if there is one.

    Raises
    ------
    TypeError
        The arrays have different types.
    ValueError
        They have different sizes, or sizes that are no multiple of 16 bytes, or a block of the mask has no barrier.
    """
    if not isinstance(bar, Barrier):
        msg = f"cuda.copy_async takes a barrier, not {type(bar).__name__}"
        raise TypeError(msg)
    plain = np.asarray(to)
    _checked(plain, source)
    late: Any = _Late(source, plain.shape) if isinstance(source, Box) else np.asarray(source).reshape(plain.shape)
    if multicast is None:
        bar.begin((plain, late))
        return
    cluster, mask = threads.current().block.cluster, int(multicast)
    receivers = [block for block in cluster if mask >> block.cluster_rank & 1]
    counters = [barrier_of(bar, block) for block in receivers]
    are_there = all(each is not None and (each is bar or each.is_synchronized) for each in counters)
    if not 0 < mask < 1 << len(cluster) or not are_there:
        msg = (
            "`multicast` must name blocks of the cluster, and each must have made the barrier: call "
            "`cuda.cluster.sync()` after `cuda.barrier`"
        )
        raise ValueError(msg)
    for block, counter in zip(receivers, counters, strict=True):
        assert counter is not None
        counter.begin((np.asarray(in_block(to, block)), late))


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
