"""Collective operations of threads, for kernels that CPython runs: where they wait, and the result of each."""

from __future__ import annotations

import numpy as np

from weft.cuda._cpython.scalars import SCALARS, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from weft.cuda._cpython.threads import Thread

    # A thread's result, from its rank in the group and the values of all members in order.
    Combine = Callable[[int, dict[int, Any]], Any]

WARP = 32
ALL = 0xFFFFFFFF


class Collective:
    """A thread's wait for others: of its warp by a mask, or of those that are here; of its block; of the grid."""

    def __init__(
        self, scope: str, name: str, site: Any, combine: Combine, brought: Any = None, mask: int | None = None
    ) -> None:
        self.scope, self.name, self.site, self.combine = scope, name, site, combine
        self.brought, self.mask, self.result = brought, mask, None

    def describe(self) -> str:
        """Say what is waited for, and where."""
        code, line = self.site[0], self.site[2]
        return f"{self.name}() in {code.co_name}, {code.co_filename}:{line}"


def warp_groups(warp: list[Thread]) -> Iterable[list[Thread]]:
    """Find the lanes of a warp that can go on, all of a mask being there, and give them their results."""
    alive = {thread.lane: thread for thread in warp if not thread.ended}
    done: set[int] = set()
    for lane, thread in alive.items():
        collective = thread.waiting
        if lane in done or collective is None or collective.scope != "warp" or collective.mask is None:
            continue
        named = [other for other in alive if collective.mask >> other & 1]
        if lane not in named:
            continue
        together = [alive[other] for other in named if _same(alive[other].waiting, collective)]
        if len(together) == len(named):
            done.update(named)
            yield hand_out(together)


def _same(other: Collective | None, collective: Collective) -> bool:
    return (
        other is not None and other.scope == "warp" and other.mask == collective.mask and other.name == collective.name
    )


def hand_out(group: list[Thread]) -> list[Thread]:
    """Give each of those that go on together what it gets, by their lanes or, in a block, their ranks."""
    collectives = [thread.waiting for thread in group if thread.waiting is not None]
    in_warp = collectives[0].scope == "warp"
    ranks = [thread.lane if in_warp else thread.rank for thread in group]
    brought = {rank: collective.brought for rank, collective in zip(ranks, collectives, strict=True)}
    for rank, collective in zip(ranks, collectives, strict=True):
        collective.result = collective.combine(rank, brought)
    return group


def stranded(alive: list[Thread]) -> Iterable[list[Thread]]:
    """Resume lanes without those that do not arrive, when no other thread can run: one group per call in the source.

    Lanes that query the active mask come first, because they wait for no other lane.
    """
    lanes = [thread for thread in alive if thread.waiting is not None and thread.waiting.scope == "warp"]
    asking = [thread for thread in lanes if thread.waiting is not None and thread.waiting.mask is None] or lanes
    groups: dict[Any, list[Thread]] = {}
    for thread in asking:
        assert thread.waiting is not None
        key = (thread.block.index, thread.rank // WARP, thread.waiting.name, thread.waiting.site)
        groups.setdefault(key, []).append(thread)
    return [hand_out(group) for group in groups.values()]


# ---- the result of each lane ---------------------------------------------------------------------------------------


def nothing(rank: int, brought: dict[int, Any]) -> None:
    """Give nothing."""
    del rank, brought


def _shuffled(source: Callable[[int, int, int], int]) -> Combine:
    def combine(lane: int, brought: dict[int, Any]) -> Any:
        own, by, width = brought[lane]
        other = source(lane, by, width)
        return brought[other][0] if other in brought else own

    return combine


def _up(lane: int, by: int, width: int) -> int:
    return lane - by if lane - by >= lane // width * width else lane


def _down(lane: int, by: int, width: int) -> int:
    return lane + by if lane + by < lane // width * width + width else lane


def _xor(lane: int, by: int, width: int) -> int:
    return lane ^ by if lane ^ by < lane // width * width + width else lane


def bits(lanes: Iterable[int], kind: str = "int32") -> Any:
    """Give a word with a bit for each lane."""
    return SCALARS[kind](sum(1 << lane for lane in lanes))


def _voted(decide: Callable[[dict[int, bool]], Any]) -> Combine:
    return lambda _lane, brought: decide({other: bool(value) for other, value in brought.items()})


def alike(a: Any, b: Any) -> bool:
    """Say whether two values have the same bits."""
    return np.asarray(plain(a)).tobytes() == np.asarray(plain(b)).tobytes()


def match_any(lane: int, brought: dict[int, Any]) -> Any:
    """Give the lanes with the same bits."""
    return bits(other for other, item in brought.items() if alike(item, brought[lane]))


def match_all(lane: int, brought: dict[int, Any]) -> Any:
    """Give all lanes if they have the same bits, and whether they do."""
    same = all(alike(item, brought[lane]) for item in brought.values())
    return (bits(brought) if same else SCALARS["int32"](0)), same


def _reduced(function: Callable[[Any, Any], Any]) -> Combine:
    def combine(lane: int, brought: dict[int, Any]) -> Any:
        del lane
        items = [item for _, item in sorted(brought.items())]
        name = np.asarray(plain(items[0])).dtype.name
        small = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32"}
        kind = SCALARS[small.get(name, name)]
        total = kind(items[0])
        for item in items[1:]:
            total = kind(function(total, kind(item)))
        return total

    return combine


def _elected(lane: int, brought: dict[int, Any]) -> bool:
    return lane == min(brought)


# The result of each lane, by the name of the function.
COMBINE: dict[str, Combine] = {
    "shfl_sync": _shuffled(lambda lane, by, width: lane // width * width + by % width),
    "shfl_up_sync": _shuffled(_up),
    "shfl_down_sync": _shuffled(_down),
    "shfl_xor_sync": _shuffled(_xor),
    "all_sync": _voted(lambda truths: all(truths.values())),
    "any_sync": _voted(lambda truths: any(truths.values())),
    "eq_sync": _voted(lambda truths: len(set(truths.values())) == 1),
    "ballot_sync": _voted(lambda truths: bits(lane for lane, truth in truths.items() if truth)),
    "match_any_sync": match_any,
    "match_all_sync": match_all,
    "elect_sync": _elected,
    "reduce_add_sync": _reduced(lambda a, b: a + b),
    "reduce_min_sync": _reduced(lambda a, b: b if b < a or a != a else a),
    "reduce_max_sync": _reduced(lambda a, b: b if b > a or a != a else a),
    "reduce_and_sync": _reduced(lambda a, b: a & b),
    "reduce_or_sync": _reduced(lambda a, b: a | b),
    "reduce_xor_sync": _reduced(lambda a, b: a ^ b),
}
