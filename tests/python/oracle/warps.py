"""Collectives of a warp in the oracle: how lanes converge, and the result of each lane.

A lane stops at such a call. The lanes of a mask continue when all of them that have not returned are at the same call.
`combine` computes the result of each lane from the arguments of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

WARP = 32
ALL = 0xFFFFFFFF


class Meeting:
    """A lane's stop at a call."""

    def __init__(self, site: object, mask: int | None, combine: Callable, brought: tuple) -> None:
        """A mask of None: the lanes that have arrived when no other lane of the warp can continue."""
        self.site, self.mask, self.combine, self.brought = site, mask, combine, brought
        self.result: object = None

    def matches(self, other: Meeting) -> bool:
        """Whether lanes that stop at these two calls may converge."""
        if self.mask is None or other.mask is None:
            return self.site == other.site and self.mask is other.mask
        return self.mask == other.mask and self.combine is other.combine


def meet(group: dict[int, Meeting]) -> None:
    """Sets the result of each lane of a converged group."""
    brought = {lane: meeting.brought for lane, meeting in group.items()}
    for lane, meeting in group.items():
        meeting.result = meeting.combine(lane, brought)


def groups(waiting: dict[int, Meeting], alive: set[int]) -> list[dict[int, Meeting]]:
    """The lanes that can continue: those of a complete mask. `alive` has the lanes that have not returned."""
    found = []
    for lane, meeting in waiting.items():
        if meeting.mask is None or any(lane in group for group in found):
            continue
        named = {other for other in alive if meeting.mask >> other & 1}
        together = {other: waiting[other] for other in named if other in waiting and meeting.matches(waiting[other])}
        if lane in together and set(together) == named:
            found.append(together)
    return found


def stranded(waiting: dict[int, Meeting]) -> list[dict[int, Meeting]]:
    """The lanes at each call, if no mask has all its lanes: those with a mask of None, or else all."""
    asking = {lane: meeting for lane, meeting in waiting.items() if meeting.mask is None} or waiting
    sites: dict[object, dict[int, Meeting]] = {}
    for lane, meeting in asking.items():
        sites.setdefault(meeting.site, {})[lane] = meeting
    return list(sites.values())


# ---- the result of a lane: `lane` is its number, `brought` has the arguments of the lanes that have arrived ---------


def _part(width: object) -> int:
    return int(width)


def shuffled(source: Callable[[int, int, int], int]) -> Callable:
    """A shuffle: `source(lane, by, width)` is the source lane; a lane gets its own value if that is out of range."""

    def combine(lane: int, brought: dict[int, tuple]) -> object:
        own, by, *width = brought[lane]
        other = source(lane, int(by) % WARP, _part(width[0]) if width else WARP)
        return brought[other][0] if other in brought else own

    return combine


def _index(lane: int, by: int, width: int) -> int:
    return lane // width * width + by % width


def _up(lane: int, by: int, width: int) -> int:
    return lane - by if lane - by >= lane // width * width else lane


def _down(lane: int, by: int, width: int) -> int:
    return lane + by if lane + by < lane // width * width + width else lane


def _xor(lane: int, by: int, width: int) -> int:
    return lane ^ by if lane ^ by < lane // width * width + width else lane


def _truths(brought: dict[int, tuple]) -> dict[int, bool]:
    return {lane: bool(truth) for lane, (truth,) in brought.items()}


def _bits(lanes) -> np.int32:
    return np.uint32(sum(1 << lane for lane in lanes)).astype(np.int32)


def voted(decide: Callable) -> Callable:
    """A vote: `decide(truths)` is the result of all lanes."""
    return lambda lane, brought: decide(_truths(brought))


def _same(a: object, b: object) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _match_any(lane: int, brought: dict[int, tuple]) -> np.int32:
    (own,) = brought[lane]
    return _bits(other for other, (item,) in brought.items() if _same(item, own))


def _match_all(lane: int, brought: dict[int, tuple]) -> tuple[np.int32, np.bool_]:
    (own,) = brought[lane]
    alike = all(_same(item, own) for (item,) in brought.values())
    return (_bits(brought) if alike else np.int32(0)), np.bool_(alike)


def reduced(function: Callable) -> Callable:
    """A reduction: smaller integers are widened to int32 and uint32."""

    def combine(lane: int, brought: dict[int, tuple]) -> object:
        items = [item for _, (item,) in sorted(brought.items())]
        dtype = np.asarray(items[0]).dtype
        if dtype.kind in "iub" and dtype.itemsize <= 4:
            dtype = np.dtype(np.uint32 if dtype.kind == "u" and dtype.itemsize == 4 else np.int32)
        items = np.array([np.asarray(item).astype(dtype) for item in items], dtype)
        return dtype.type(function.reduce(items, dtype=dtype) if function is np.add else function.reduce(items))

    return combine


COMBINE = {
    "shfl_sync": shuffled(_index),
    "shfl_up_sync": shuffled(_up),
    "shfl_down_sync": shuffled(_down),
    "shfl_xor_sync": shuffled(_xor),
    "all_sync": voted(lambda truths: np.bool_(all(truths.values()))),
    "any_sync": voted(lambda truths: np.bool_(any(truths.values()))),
    "eq_sync": voted(lambda truths: np.bool_(len(set(truths.values())) == 1)),
    "ballot_sync": voted(lambda truths: _bits(lane for lane, truth in truths.items() if truth)),
    "match_any_sync": _match_any,
    "match_all_sync": _match_all,
    "elect_sync": lambda lane, brought: np.bool_(lane == min(brought)),
    "reduce_add_sync": reduced(np.add),
    "reduce_min_sync": reduced(np.minimum),
    "reduce_max_sync": reduced(np.maximum),
    "reduce_and_sync": reduced(np.bitwise_and),
    "reduce_or_sync": reduced(np.bitwise_or),
    "reduce_xor_sync": reduced(np.bitwise_xor),
}


def _active(lane: int, brought: dict[int, tuple]) -> np.uint32:
    del lane
    return np.uint32(sum(1 << lane for lane in brought))


def _nothing(lane: int, brought: dict[int, tuple]) -> None:
    del lane, brought


def meeting(name: str, site: object, args: tuple, kwargs: dict) -> Meeting:
    """A lane's stop at the call of a name."""
    if name == "activemask":
        return Meeting(site, None, _active, ())
    if name == "syncwarp":
        mask = kwargs.get("mask", args[0] if args else ALL)
        return Meeting(site, int(mask) & ALL, _nothing, ())
    mask, *brought = (*args, *kwargs.values())
    return Meeting(site, int(mask) & ALL, COMBINE[name], tuple(brought))
