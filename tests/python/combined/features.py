"""Which features occurred in one program together, and which pairs of them never did."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any


def planned_features(kernel: Any) -> list[str]:
    """What the planner says that it did to a kernel; nothing where weft cannot say it."""
    del kernel
    return []


class Pairs:
    """Counts of features and of pairs of them."""

    def __init__(self) -> None:
        self.single: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, features: tuple[str, ...]) -> None:
        names = sorted(features)
        self.single.update(names)
        self.pairs.update(itertools.combinations(names, 2))

    def table(self, total: int, wanted: int, known: dict[tuple[str, str], str]) -> list[str]:
        """Lines: each feature with its count, its rarest partners, and pairs below what is wanted, with the reason."""
        lines = [f"{'feature':32} {'programs':>9} {'pairs':>6}  rarest partners"]
        names = sorted(self.single, key=lambda name: -self.single[name])
        for name in names:
            others = sorted((self.pairs[tuple(sorted((name, other)))], other) for other in names if other != name)  # type: ignore[index]
            shown = ", ".join(f"{other} {count}" for count, other in others[:4])
            lines.append(f"{name:32} {self.single[name]:9} {sum(count > 0 for count, _ in others):6}  {shown}")
        rare = [
            (self.pairs[pair], pair) for pair in itertools.combinations(sorted(names), 2) if self.pairs[pair] < wanted
        ]
        explained = [(count, pair) for count, pair in rare if pair in known]
        lines.append(f"\n{len(names)} features, {len(names) * (len(names) - 1) // 2} pairs, {len(rare)} of them in fewer than {wanted} of {total} programs; {len(explained)} of these cannot occur:")
        for count, pair in sorted(rare, key=lambda each: (each[1] in known, each)):
            lines.append(f"  {count:6}  {pair[0]} + {pair[1]}" + (f": {known[pair]}" if pair in known else ""))
        return lines
