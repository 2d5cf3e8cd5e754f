"""Cooperative groups and collectives, for kernels that CPython runs: `cuda.cg` and `cuda.coop`.

A collective operation synchronizes the threads of a group; one thread computes the result of each.
"""

from __future__ import annotations

import functools

import numpy as np

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Array, Vector, VectorType
from weft.cuda._cpython.names import INT32, INT64, NAMES, UINT32, activemask, meet, site
from weft.cuda._cpython.scalars import SCALARS
from weft.cuda._cpython.warps import WARP, Collective, alike, nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _vector(index: tuple[int, int, int]) -> Vector:
    return VectorType("int32", 3)(*index)


class Group:
    """The base of all groups: `members` are the ranks of its threads, in order."""

    scope = "block"
    mask: int | None = None

    def members(self) -> list[int]:
        raise NotImplementedError

    def own(self) -> int:
        raise NotImplementedError

    def meet(self, name: str, brought: Any, combine: Callable[[int, list[Any]], Any]) -> Any:
        """Meet the others; `combine` makes what a thread gets of its rank and of all that was brought, in order."""
        members = self.members()

        def give(member: int, by_member: dict[int, Any]) -> Any:
            here = [other for other in members if other in by_member]
            values = [by_member[other] for other in here]
            return combine(here.index(member) if member in here else 0, values)

        return meet(Collective(self.scope, name, site(), give, brought, self.mask))

    def sync(self) -> Any:
        """Wait for the others."""
        meet(Collective(self.scope, "sync", site(), nothing, None, self.mask))

    def thread_rank(self) -> Any:
        """Give the thread's number."""
        return INT32(self.members().index(self.own()))

    def num_threads(self) -> Any:
        """Give how many threads there are."""
        return INT32(len(self.members()))

    def size(self) -> Any:
        """Give how many threads there are."""
        return self.num_threads()


class ThreadBlock(Group):
    """All threads of a block."""

    def members(self) -> list[int]:
        return [thread.rank for thread in threads.current().block.threads]

    def own(self) -> int:
        return threads.current().rank

    def thread_index(self) -> Vector:
        """Give `threadIdx`."""
        return _vector(threads.current().index)

    def group_index(self) -> Vector:
        """Give `blockIdx`."""
        return _vector(threads.current().block.index)

    def dim_threads(self) -> Vector:
        """Give `blockDim`."""
        return _vector(threads.current().launch.block_dim)

    group_dim = dim_threads


class GridGroup(Group):
    """All threads of the grid."""

    scope = "grid"

    def thread_rank(self) -> Any:
        """Give the thread's number in the grid."""
        thread = threads.current()
        return INT64(int(self.block_rank()) * len(thread.block.threads) + thread.rank)

    def num_threads(self) -> Any:
        """Give how many threads the grid has."""
        return INT64(int(self.num_blocks()) * len(threads.current().block.threads))

    def sync(self) -> Any:
        """Wait for all threads of the grid; 0, as in CUDA."""
        super().sync()
        return INT32(0)

    def block_rank(self) -> Any:
        """Give the block's number."""
        thread = threads.current()
        (x, y, z), (width, height, _) = thread.block.index, thread.launch.grid_dim
        return INT64(x + width * (y + height * z))

    def num_blocks(self) -> Any:
        """Give how many blocks there are."""
        return INT64(int(np.prod(threads.current().launch.grid_dim, dtype=np.int64)))

    def block_index(self) -> Vector:
        """Give `blockIdx`."""
        return _vector(threads.current().block.index)

    def dim_blocks(self) -> Vector:
        """Give `gridDim`."""
        return _vector(threads.current().launch.grid_dim)

    def is_valid(self) -> bool:
        """Say that all blocks run at a time."""
        return True


class _Lanes(Group):
    """Some lanes of a warp."""

    scope = "warp"

    def __init__(self, lanes: list[int], rank: int, count: int) -> None:
        self.lanes, self._rank, self._count = lanes, rank, count
        self.mask = sum(1 << lane for lane in lanes)

    def members(self) -> list[int]:
        return self.lanes

    def own(self) -> int:
        return threads.current().lane

    def meta_group_rank(self) -> Any:
        """Give the group's number."""
        return INT32(self._rank)

    def meta_group_size(self) -> Any:
        """Give how many such groups there are."""
        return INT32(self._count)

    def _shuffle(self, name: str, value: Any, source: Callable[[int, int], int]) -> Any:
        def give(rank: int, values: list[Any]) -> Any:
            other = source(rank, len(values))
            return values[other] if 0 <= other < len(values) else values[rank]

        return self.meet(name, value, give)

    def shfl(self, value: Any, rank: Any) -> Any:
        """Give the value of a thread."""
        return self._shuffle("shfl", value, lambda _own, count: int(rank) % count)

    def shfl_up(self, value: Any, delta: Any) -> Any:
        """Give the value of a thread before this one."""
        return self._shuffle("shfl_up", value, lambda own, _count: own - int(delta))

    def shfl_down(self, value: Any, delta: Any) -> Any:
        """Return the value of the thread `delta` ranks after this one."""
        return self._shuffle("shfl_down", value, lambda own, _count: own + int(delta))

    def shfl_xor(self, value: Any, lane_mask: Any) -> Any:
        """Give the value of the thread whose number differs in these bits."""
        return self._shuffle("shfl_xor", value, lambda own, _count: own ^ int(lane_mask))

    def any(self, predicate: Any) -> Any:
        """Say whether it is true for one."""
        return self.meet("any", predicate, lambda _rank, values: any(bool(value) for value in values))

    def all(self, predicate: Any) -> Any:
        """Say whether it is true for all."""
        return self.meet("all", predicate, lambda _rank, values: all(bool(value) for value in values))

    def ballot(self, predicate: Any) -> Any:
        """Give a bit for each for which it is true."""
        return self.meet("ballot", predicate, lambda _rank, values: _bits(bool(value) for value in values))

    def match_any(self, value: Any) -> Any:
        """Give a bit for each that has the same value."""
        return self.meet("match_any", value, lambda rank, values: _bits(alike(item, values[rank]) for item in values))

    def match_all(self, value: Any) -> Any:
        """Give all bits if all have the same value, and whether they have."""

        def give(rank: int, values: list[Any]) -> Any:
            same = all(alike(item, values[rank]) for item in values)
            return (_bits([True] * len(values)) if same else UINT32(0)), same

        return self.meet("match_all", value, give)


def _bits(truths: Any) -> Any:
    return UINT32(sum(1 << at for at, truth in enumerate(truths) if truth))


def tile(group: Any, size: Any) -> _Lanes:
    del group  # tiles are numbered within the block, for any group
    thread = threads.current()
    size = int(size)
    if size not in (1, 2, 4, 8, 16, 32):
        msg = f"a tile has 1, 2, 4, 8, 16 or 32 threads, not {size}"
        raise ValueError(msg)
    base = thread.lane // size * size
    first = thread.rank // WARP * WARP
    lanes = [lane for lane in range(base, base + size) if first + lane < len(thread.block.threads)]
    return _Lanes(lanes, thread.rank // size, -(-len(thread.block.threads) // size))


def _coalesced() -> _Lanes:
    mask = int(activemask())
    return _Lanes([lane for lane in range(WARP) if mask >> lane & 1], 0, 1)


def _less(a: Any, b: Any) -> Any:
    return b if b < a else a


def _greater(a: Any, b: Any) -> Any:
    return b if b > a else a


NAMES["weft.cuda.cg.this_grid"], NAMES["weft.cuda.cg.this_thread_block"] = GridGroup, ThreadBlock
NAMES["weft.cuda.cg.tiled_partition"], NAMES["weft.cuda.cg.coalesced_threads"] = tile, _coalesced
for _name, _op in {
    "plus": lambda a, b: a + b,
    "less": _less,
    "greater": _greater,
    "bit_and": lambda a, b: a & b,
    "bit_or": lambda a, b: a | b,
    "bit_xor": lambda a, b: a ^ b,
}.items():
    NAMES[f"weft.cuda.cg.{_name}"] = _op


# ---- reductions and scans of a group -------------------------------------------------------------------------------


def _like(value: Any, other: Any) -> Any:
    """Convert what an operation gives to the type of the values."""
    if isinstance(other, tuple):
        items = [_like(item, its) for item, its in zip(value, other, strict=True)]
        return type(other)(*items) if hasattr(other, "_fields") else tuple(items)
    if isinstance(other, bool):
        return INT32(value) if not isinstance(value, bool) else value
    kind = type(other)
    return kind(value) if kind.__name__ in SCALARS and SCALARS[kind.__name__] is kind else value


def summed(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        items = [summed(x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    return a + b


def _folded(values: list[Any], op: Any) -> list[Any]:
    """Give what the values up to each are together."""
    totals = values[:1]
    for value in values[1:]:
        totals.append(_like(op(totals[-1], value), value))
    return totals


def _numbers(values: list[Any], op: Any) -> list[Any]:
    # Bools are summed as int32.
    return [INT32(value) if isinstance(value, bool) and op is summed else value for value in values]


def reduced(group: Group, name: str, value: Any, op: Any, valid: Any = None) -> Any:
    def give(rank: int, brought: list[Any]) -> Any:
        del rank
        values = _flat(brought)
        if valid is not None:
            per = len(values) // len(brought)
            values = values[: int(valid) * per]
        return functools.reduce(lambda a, b: _like(op(a, b), b), _numbers(values, op))

    return group.meet(name, _brought(value), give)


def _brought(value: Any) -> Any:
    return list(value) if isinstance(value, (Array, list)) else value


def _flat(brought: list[Any]) -> list[Any]:
    return [item for value in brought for item in (value if isinstance(value, list) else [value])]


def scanned(
    group: Group, name: str, value: Any, op: Any, *, initial: Any = None, exclusive: bool, aggregate: bool = False
) -> Any:
    items = isinstance(value, Array)

    def give(rank: int, brought: list[Any]) -> Any:
        values = _numbers(_flat(brought), op)
        totals = _folded(values, op)
        if exclusive:
            start = _zero(values[0]) if initial is None else _like(initial, values[0])
            results = [start, *(total if initial is None else _like(op(start, total), total) for total in totals[:-1])]
        else:
            results = totals
        per = len(values) // len(brought)
        own = results[rank * per : (rank + 1) * per]
        return (own if items else own[0]), totals[-1]

    own, total = group.meet(name, _brought(value), give)
    if items:
        for at, item in enumerate(own):
            value[at] = item
        return total if aggregate else None
    return (own, total) if aggregate else own


def _zero(value: Any) -> Any:
    if isinstance(value, tuple):
        items = [_zero(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value.of(0) if isinstance(value, Vector) else type(value)(0)


NAMES["weft.cuda.cg.reduce"] = lambda group, value, op: reduced(group, "reduce", value, op)
NAMES["weft.cuda.cg.inclusive_scan"] = lambda group, value, op=summed: scanned(
    group, "inclusive_scan", value, op, exclusive=False
)
NAMES["weft.cuda.cg.exclusive_scan"] = lambda group, value, op=summed: scanned(
    group, "exclusive_scan", value, op, exclusive=True
)
