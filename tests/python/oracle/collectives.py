"""`cuda.coop` for the oracle of the random programs: collectives of the threads of a block, or of lanes.

A function here gets the arguments of all threads in order, by the names of the parameters. For each thread it computes
the result of the call and the contents of its arrays afterwards. Values are reduced from the first to the last. Where
another order could have another result, as in rounded float sums, the program is rejected.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from oracle import bfloat16, numeric
from oracle.warps import WARP, Meeting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCANS = ("inclusive_scan", "exclusive_scan", "inclusive_sum", "exclusive_sum")
PAIRS = ("merge_sort_pairs", "radix_sort_pairs", "radix_sort_pairs_descending")
ITEMS = ("x", "keys", "values", "items", "ranks")  # parameters that may be arrays
Bundle = dict[str, object]


def parameters(kind: str, name: str) -> tuple[str, ...]:
    """The names of a function's parameters, in order."""
    many = ("threads",) if kind == "warp" else ()
    if name in SCANS:
        own = {"inclusive_scan": ("op",), "exclusive_scan": ("op", "initial")}.get(name, ())
        return ("x", *own, *many, "aggregate")
    if name in ("reduce", "sum", "min", "max"):
        own = ("op",) if name == "reduce" else ()
        return ("x", *own, *many, "valid") if many else ("x", *own, "valid", "broadcast")
    if name.startswith("merge_sort"):
        return ("keys", *(("values",) if name in PAIRS else ()), "less", *many, "valid")
    if name.startswith("radix_sort"):
        return ("keys", *(("values",) if name in PAIRS else ()), "begin_bit", "end_bit")
    return ("items", "ranks") if name.startswith("scatter") else ("items", *many)


class Collective:
    """A function at which the threads of a block, or the lanes of a warp, wait for each other."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.combine = lambda lane, brought: self.results(brought)[sorted(brought).index(lane)]
        self.last: tuple[object, list] = (None, [])

    def results(self, brought: dict[int, tuple]) -> list:
        """The results of all threads, computed once."""
        if self.last[0] is not brought:
            self.last = brought, compute(self.name, [bundle for _, (bundle,) in sorted(brought.items())])
        return self.last[1]

    def __call__(self, thread: object, site: object, args: tuple, kwargs: dict) -> Iterator:
        """A thread's call: a generator that stops where the thread waits."""
        bundle = dict(zip(parameters(self.kind, self.name), args, strict=False)) | kwargs
        taken = {key: item.copy()[()] if isinstance(item, np.ndarray) else item for key, item in bundle.items()}
        if self.kind == "block":
            together, sites = thread.block.together, thread.block.sites  # of the current barrier interval
            together[thread.linear] = (taken,)
            sites.add(site)
            yield None
            size = int(np.prod([int(getattr(thread.block_dim, axis)) for axis in "xyz"]))
            all_there(len(together) == size and len(sites) == 1)
            found = self.combine(thread.linear, together)
        else:
            met = Meeting(site, group(thread, int(bundle.get("threads", WARP))), self.combine, (taken,))
            yield met
            all_there(True)
            found = met.result
        result, arrays = found
        for key, items in arrays.items():
            bundle[key][...] = items
        return result


def all_there(are: bool) -> None:
    """Rejects a call that some threads do not reach because they have ended, for example where a value was None."""
    from oracle.emulate import Left

    if Left.count:
        raise IndexError("a thread of a collective has ended")
    if not are:
        raise RuntimeError("some threads of a block are not at its collective")


def group(thread: object, width: int) -> int:
    """The mask of the lanes that the block has of a thread's group."""
    size = int(np.prod([int(getattr(thread.block_dim, axis)) for axis in "xyz"]))
    lane = thread.linear % WARP
    first = lane // width * width
    there = min(WARP, size - thread.linear // WARP * WARP)
    return sum(1 << each for each in range(first, min(first + width, there)))


# ---- values ---------------------------------------------------------------------------------------------------------


def unsure() -> None:
    """The result depends on the order or on rounding."""
    if bfloat16.REFUSED:
        raise bfloat16.REFUSED[0]


def like(item: object, model: object) -> object:
    """A value converted to the type of another."""
    if isinstance(model, tuple):
        return tuple(like(*pair) for pair in zip(item, model, strict=True))
    return numeric.cast(item, model.dtype.type)


def call(function: object, *args: object) -> object:
    return getattr(function, "call", function)(*args)


def numbers(item: object) -> list:
    return [each for part in item for each in numbers(part)] if isinstance(item, tuple) else [item]


def same(one: object, two: object) -> bool:
    pairs = zip(numbers(one), numbers(two), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def items_of(item: object) -> list:
    """The items of a thread."""
    return list(item) if isinstance(item, np.ndarray) else [item]


def is_nan(item: object) -> bool:
    return item.dtype.kind in "fc" and bool(np.isnan(item))


def each_part(items: list) -> list[list]:
    """The floats in numbers, real and imaginary parts separate."""
    if items[0].dtype.kind == "c":
        return [[item.real for item in items], [item.imag for item in items]]
    return [items] if items[0].dtype.kind == "f" else []


def exact(items: list) -> None:
    """Rejects floats whose sums are rounded, and zeros whose sign another zero would change."""
    for parts in each_part(items):
        finite = [Fraction(float(part)) for part in parts if np.isfinite(part)]
        if any(part == 0 and np.signbit(part) for part in parts):
            unsure()
        total, unit = sum(map(abs, finite)), max((part.denominator for part in finite), default=1)
        digits = np.finfo(parts[0].dtype).nmant + 1
        if total * unit >= 1 << digits or (total and total >= float(np.finfo(parts[0].dtype).max)):
            unsure()


def plus(a: object, b: object) -> object:
    return numeric.binary("+", a, b)


def extreme(name: str) -> Callable:
    from oracle.emulate import BUILTINS

    return BUILTINS[name]


def folded(function: object, items: list) -> list:
    """The inclusive scan of the items."""
    found = [items[0]]
    for item in items[1:]:
        found.append(like(call(function, found[-1], item), item))
    return found


def checked(function: object, items: list) -> None:
    """Rejects a result that another order of the operations would change."""
    if any(is_nan(number) for item in items for number in numbers(item)):
        unsure()
    last, halves = items[-1], list(items)
    for item in reversed(items[:-1]):
        last = like(call(function, item, last), item)
    while len(halves) > 1:
        pairs = [halves[at : at + 2] for at in range(0, len(halves), 2)]
        halves = [like(call(function, *pair), pair[0]) if len(pair) > 1 else pair[0] for pair in pairs]
    total = folded(function, items)[-1]
    if not same(last, total) or not same(halves[0], total):
        unsure()


def operator(name: str, bundle: Bundle, items: list) -> object:
    """The function by which a call reduces items."""
    if name.endswith("sum"):
        exact(items)
        return plus
    if name in ("min", "max"):
        return extreme(name)
    checked(bundle["op"], items)
    return bundle["op"]


# ---- the functions --------------------------------------------------------------------------------------------------


def compute(name: str, bundles: list[Bundle]) -> list[tuple[object, dict]]:
    """Each thread's result, and the contents of its arrays."""
    if name in SCANS:
        return scans(name, bundles)
    if name in ("reduce", "sum", "min", "max"):
        return reductions(name, bundles)
    return sorts(name, bundles) if "sort" in name else exchanges(name, bundles)


def counted(name: str, item: object) -> list:
    """A thread's items; bools are numbers in sums."""
    items = items_of(item)
    truths = name.endswith("sum") and not isinstance(item, np.ndarray) and items[0].dtype.kind == "b"
    return [np.int32(each) for each in items] if truths else items


def reductions(name: str, bundles: list[Bundle]) -> list[tuple[object, dict]]:
    first = bundles[0]
    valid = first.get("valid")
    taken = bundles if valid is None else bundles[: max(int(valid), 1)]
    items = [item for bundle in taken for item in counted(name, bundle["x"])]
    total = folded(operator(name, first, items), items)[-1]
    if first.get("broadcast", True):
        return [(total, {})] * len(bundles)
    nothing = like(tuple(np.int8(7) for _ in total) if isinstance(total, tuple) else np.int8(7), total)
    return [(total, {}), *[(nothing, {})] * (len(bundles) - 1)]


def scans(name: str, bundles: list[Bundle]) -> list[tuple[object, dict]]:
    first = bundles[0]
    own = [counted(name, bundle["x"]) for bundle in bundles]
    items = [item for each in own for item in each]
    function = operator(name, first, items)
    found = folded(function, items)
    total = found[-1]
    if name == "exclusive_sum":
        found = [like(np.int8(0), total), *found[:-1]]
    elif name == "exclusive_scan":
        start = like(first["initial"], total)
        checked(function, [start, *items])
        found = folded(function, [start, *items])[:-1]
    results, at = [], 0
    for bundle, mine in zip(bundles, own, strict=True):
        part, at = found[at : at + len(mine)], at + len(mine)
        if isinstance(bundle["x"], np.ndarray):
            results.append((total if first.get("aggregate") else None, {"x": part}))
        else:
            results.append(((part[0], total) if first.get("aggregate") else part[0], {}))
    return results


def digits(name: str, key: object, begin: int, end: int | None) -> int:
    """The bits of a number by which it is sorted."""
    width = 8 * key.dtype.itemsize
    bits = int(np.asarray(key).view(f"u{key.dtype.itemsize}"))
    top = 1 << (width - 1)
    if key.dtype.kind == "f":
        if is_nan(key):
            unsure()
        bits = top if key == 0 else (1 << width) - 1 - bits if bits & top else bits | top
    elif key.dtype.kind == "i":
        bits ^= top
    if name.endswith("descending"):
        bits = (1 << width) - 1 - bits
    return (bits >> begin) & ((1 << (width if end is None else end) - begin) - 1)


def order(name: str, first: Bundle, keys: list) -> Callable:
    """The values by which keys are sorted."""
    if name.startswith("radix"):
        begin, end = int(first.get("begin_bit", 0)), first.get("end_bit")
        return lambda key: digits(name, key, begin, None if end is None else int(end))
    less = first.get("less")
    if less is None:
        return lambda key: (is_nan(key), 0 if is_nan(key) else key)
    if any(is_nan(number) for key in keys for number in numbers(key)):
        unsure()
    return functools.cmp_to_key(lambda a, b: int(bool(call(less, b, a))) - int(bool(call(less, a, b))))


def sorts(name: str, bundles: list[Bundle]) -> list[tuple[object, dict]]:
    first = bundles[0]
    keys = [key for bundle in bundles for key in items_of(bundle["keys"])]
    values = [each for bundle in bundles for each in items_of(bundle.get("values", bundle["keys"]))]
    valid = first.get("valid")
    count = len(keys) if valid is None else min(max(int(valid), 0), len(keys))
    by = order(name, first, keys)
    places = sorted(range(count), key=lambda at: by(keys[at])) + list(range(count, len(keys)))
    results, at = [], 0
    for bundle in bundles:
        many = len(items_of(bundle["keys"]))
        mine, at = places[at : at + many], at + many
        got = {"keys": [keys[place] for place in mine]}
        if name in PAIRS:
            got["values"] = [values[place] for place in mine]
        if isinstance(bundle["keys"], np.ndarray):
            results.append((None, got))
        else:
            alone = tuple(items[0] for items in got.values())
            results.append((alone if name in PAIRS else alone[0], {}))
    return results


def exchanges(name: str, bundles: list[Bundle]) -> list[tuple[object, dict]]:
    threads, many = len(bundles), len(bundles[0]["items"])
    blocked = [(thread, k) for thread in range(threads) for k in range(many)]
    striped = [(thread, k) for k in range(many) for thread in range(threads)]
    source, target = (striped, blocked) if name == "striped_to_blocked" else (blocked, striped)
    pairs = zip(source, target, strict=True)
    if name.startswith("scatter"):
        target = blocked if name.endswith("blocked") else striped
        pairs = (((t, k), target[int(bundles[t]["ranks"][k])]) for t, k in blocked)
    found = [bundle["items"].copy() for bundle in bundles]
    for (from_thread, from_place), (thread, place) in pairs:
        found[thread][place] = bundles[from_thread]["items"][from_place]
    return [(None, {"items": items}) for items in found]


FUNCTIONS = {
    "block": (*SCANS, "reduce", "sum", "min", "max", "merge_sort_keys", "radix_sort_keys", "radix_sort_keys_descending",
              *PAIRS, "striped_to_blocked", "blocked_to_striped", "scatter_to_blocked", "scatter_to_striped"),
    "warp": (*SCANS, "reduce", "sum", "min", "max", "merge_sort_keys", "striped_to_blocked", "blocked_to_striped"),
}  # fmt: skip
