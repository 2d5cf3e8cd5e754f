"""`cuda.coop`, for kernels that CPython runs: reductions, scans, sorts and exchanges of a block or of lanes."""

from __future__ import annotations

import functools

import numpy as np

from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Array
from weft.cuda._cpython.groups import ThreadBlock, reduced, scanned, summed, tile
from weft.cuda._cpython.names import NAMES
from weft.cuda._cpython.scalars import plain
from weft.cuda._cpython.warps import WARP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft.cuda._cpython.groups import Group


def _collectives(kind: str) -> None:
    def group(count: Any = WARP) -> Group:
        return ThreadBlock() if kind == "block" else tile(ThreadBlock(), count)

    def reduction(name: str, op: Any) -> Any:
        def function(x: Any, *, threads: Any = WARP, valid: Any = None, broadcast: bool = True) -> Any:
            del broadcast
            return reduced(group(threads), name, x, op, valid)

        return function

    def reduce(x: Any, op: Any, threads: Any = WARP, valid: Any = None, broadcast: bool = True) -> Any:
        del broadcast
        return reduced(group(threads), "reduce", x, op, valid)

    def inclusive_scan(x: Any, op: Any, aggregate: bool = False, threads: Any = WARP) -> Any:
        return scanned(group(threads), "inclusive_scan", x, op, exclusive=False, aggregate=aggregate)

    def exclusive_scan(x: Any, op: Any, initial: Any, aggregate: bool = False, threads: Any = WARP) -> Any:
        return scanned(group(threads), "exclusive_scan", x, op, initial=initial, exclusive=True, aggregate=aggregate)

    def inclusive_sum(x: Any, aggregate: bool = False, threads: Any = WARP) -> Any:
        return scanned(group(threads), "inclusive_sum", x, summed, exclusive=False, aggregate=aggregate)

    def exclusive_sum(x: Any, aggregate: bool = False, threads: Any = WARP) -> Any:
        return scanned(group(threads), "exclusive_sum", x, summed, exclusive=True, aggregate=aggregate)

    made = {"reduce": reduce, "inclusive_scan": inclusive_scan, "exclusive_scan": exclusive_scan}
    made |= {"inclusive_sum": inclusive_sum, "exclusive_sum": exclusive_sum}
    made |= {"sum": reduction("sum", summed), "min": reduction("min", _smaller), "max": reduction("max", _larger)}
    for name in ("striped_to_blocked", "blocked_to_striped"):
        made[name] = _exchange(name, group)
    made["merge_sort_keys"] = _sort("merge_sort_keys", group)
    if kind == "block":
        for name in ("scatter_to_blocked", "scatter_to_striped"):
            made[name] = _exchange(name, group)
        made["merge_sort_pairs"] = _sort("merge_sort_pairs", group)
        for order in ("", "_descending"):
            for what in ("keys", "pairs"):
                made[f"radix_sort_{what}{order}"] = _sort(f"radix_sort_{what}{order}", group)
        made["load"], made["store"] = _load, _store
    for name, function in made.items():
        NAMES[f"weft.cuda.coop.{kind}.{name}"] = function


def _smaller(a: Any, b: Any) -> Any:
    return b if b < a or a != a else a


def _larger(a: Any, b: Any) -> Any:
    return b if b > a or a != a else a


def _exchange(name: str, group: Callable[..., Group]) -> Any:
    def function(items: Any, ranks: Any = None, threads: Any = WARP) -> Any:
        def give(rank: int, brought: list[Any]) -> list[Any]:
            count, each = len(brought), len(brought[0][0])
            places: dict[int, Any] = {}
            for thread, (values, where) in enumerate(brought):
                for k, value in enumerate(values):
                    if name == "striped_to_blocked":
                        places[k * count + thread] = value
                    elif name == "blocked_to_striped":
                        at = thread * each + k
                        places[at % count * each + at // count] = value
                    else:
                        at = int(where[k])
                        places[at % count * each + at // count if name.endswith("striped") else at] = value
            return [places.get(rank * each + k) for k in range(each)]

        found = group(threads).meet(name, (list(items), None if ranks is None else list(ranks)), give)
        for k, value in enumerate(found):
            if value is not None:
                items[k] = value

    return function


def _bits_of(key: Any, begin: int, end: int | None) -> int:
    """Give the bits by which a radix sort orders: those of floats so that they rise with the number."""
    number = np.asarray(plain(key))
    width = number.itemsize * 8
    word = int(number.view(f"u{number.itemsize}")) if number.dtype.kind != "b" else int(number)
    if number.dtype.kind == "f":
        word = word ^ ((1 << width) - 1) if word >> (width - 1) else word | 1 << (width - 1)
    elif number.dtype.kind == "i":
        word ^= 1 << (width - 1)
    end = width if end is None else int(end)
    return word >> int(begin) & ((1 << (end - int(begin))) - 1)


def _sort(name: str, group: Callable[..., Group]) -> Any:
    pairs = "pairs" in name

    def sort(
        keys: Any, values: Any, order: Callable[[list[int], list[Any]], list[int]], valid: Any, threads: Any
    ) -> Any:
        alone = not isinstance(keys, Array)

        def give(rank: int, brought: list[Any]) -> Any:
            each = len(brought[0][0])
            all_keys = [key for own, _ in brought for key in own]
            all_values = [value for _, own in brought for value in own]
            count = len(all_keys) if valid is None else int(valid)
            places = order(list(range(count)), all_keys) + list(range(count, len(all_keys)))
            mine = places[rank * each : (rank + 1) * each]
            return [all_keys[at] for at in mine], [all_values[at] for at in mine]

        own = ([keys], [values]) if alone else (list(keys), list(values) if pairs else [None] * len(keys))
        new_keys, new_values = group(threads).meet(name, own, give)
        if alone:
            return (new_keys[0], new_values[0]) if pairs else new_keys[0]
        for k, key in enumerate(new_keys):
            keys[k] = key
            if pairs:
                values[k] = new_values[k]
        return None

    def merge(keys: Any, *rest: Any, less: Any = None, valid: Any = None, threads: Any = WARP) -> Any:
        values, rest = (rest[0], rest[1:]) if pairs else (None, rest)
        less = rest[0] if rest else less
        valid = rest[1] if len(rest) > 1 else valid

        def order(places: list[int], all_keys: list[Any]) -> list[int]:
            def compare(a: int, b: int) -> int:
                x, y = all_keys[a], all_keys[b]
                if less is not None:
                    return -1 if less(x, y) else 1 if less(y, x) else 0
                return -1 if x < y or (x == x and y != y) else 1 if y < x or (x != x and y == y) else 0

            return sorted(places, key=functools.cmp_to_key(compare))

        return sort(keys, values, order, valid, threads)

    def radix(keys: Any, *rest: Any, begin_bit: Any = 0, end_bit: Any = None) -> Any:
        values, rest = (rest[0], rest[1:]) if pairs else (None, rest)
        begin = rest[0] if rest else begin_bit
        end = rest[1] if len(rest) > 1 else end_bit

        def order(places: list[int], all_keys: list[Any]) -> list[int]:
            down = name.endswith("descending")
            return sorted(places, key=lambda at: _bits_of(all_keys[at], begin, end) * (-1 if down else 1))

        return sort(keys, values, order, None, WARP)

    return merge if name.startswith("merge") else radix


def _indices(count: int, algorithm: str) -> list[int]:
    thread = threads.current()
    size = len(thread.block.threads)
    if algorithm == "striped":
        return [k * size + thread.rank for k in range(count)]
    return [thread.rank * count + k for k in range(count)]


def _load(source: Any, items: Any, valid: Any = None, default: Any = None, algorithm: str = "direct") -> None:
    ThreadBlock().sync()
    for k, at in enumerate(_indices(len(items), algorithm)):
        if valid is None or at < valid:
            items[k] = source[at]
        elif default is not None:
            items[k] = default


def _store(target: Any, items: Any, valid: Any = None, algorithm: str = "direct") -> None:
    values = list(items) if isinstance(items, Array) else [items]
    for value, at in zip(values, _indices(len(values), algorithm), strict=True):
        if valid is None or at < valid:
            target[at] = value
    ThreadBlock().sync()


_collectives("block")
_collectives("warp")
