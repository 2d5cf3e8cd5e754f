"""Which features occurred in one program together, and which pairs of them never did."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def plans_of(kernel: Any) -> tuple[tuple[str, ...], ...]:
    """The features of the plan of each variant of a kernel, as the planner reports them."""
    from weft import _weft

    return tuple(tuple(names) for _, _, names in _weft.plan_features(kernel))


class Pairs:
    """Counts of features and of pairs of them."""

    def __init__(self) -> None:
        self.single: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, *together: tuple[str, ...]) -> None:
        """Counts a program: the features that occurred together, in one plan of several."""
        self.single.update({name for names in together for name in names})
        self.pairs.update({pair for names in together for pair in itertools.combinations(sorted(names), 2)})

    def load(self, single: dict[str, int], pairs: list[tuple[str, str, int]]) -> None:
        """Adds the counts of an earlier run."""
        self.single.update(single)
        self.pairs.update({(one, two): count for one, two, count in pairs})

    def table(self, total: int, wanted: int, reason: Callable[[str, str], str]) -> list[str]:
        """Lines: each feature with its count, its rarest partners, and pairs below `wanted`, with the reason."""
        lines = [f"{'feature':32} {'programs':>9} {'pairs':>6}  rarest partners"]
        names = sorted(self.single, key=lambda name: -self.single[name])
        for name in names:
            others = sorted((self.pairs[tuple(sorted((name, other)))], other) for other in names if other != name)  # type: ignore[index]
            shown = ", ".join(f"{other} {count}" for count, other in others[:3])
            lines.append(f"{name:32} {self.single[name]:9} {sum(count > 0 for count, _ in others):6}  {shown}")
        rare = [
            (self.pairs[pair], pair) for pair in itertools.combinations(sorted(names), 2) if self.pairs[pair] < wanted
        ]
        known = {pair: why for _, pair in rare if (why := reason(*pair))}
        lines.append(
            f"\n{len(names)} features, {len(names) * (len(names) - 1) // 2} pairs, {len(rare)} of them in fewer than "
            f"{wanted} of {total} programs; {len(known)} of these cannot occur:"
        )
        for count, pair in sorted(rare, key=lambda each: (each[1] in known, each)):
            lines.append(f"  {count:6}  {pair[0]} + {pair[1]}" + (f": {known[pair]}" if pair in known else ""))
        for pair, count in sorted(self.pairs.items()):
            if why := reason(*pair):
                lines.append(f"  {count:6}  {pair[0]} + {pair[1]} occurred although it cannot: {why}")
        return lines
