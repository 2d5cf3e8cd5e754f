"""Chooses programs by the plans of earlier ones, so that rare pairs of plan features occur more often.

Random programs leave most pairs of rare features out. A guide counts how often each piece of a program, in each kind of
kernel, came with each feature of the plan. Of several random candidates it takes the one that is expected to add most
to the pairs below the wanted count. Every fifth program is random, and the candidates are, so no feature is left out
for lack of examples.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from combined.impossible import reason
from combined.programs import BLOCK, BLOCK_2D, FLAT, KINDS
from combined.sweep import Chosen, Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from combined.features import Pairs

CANDIDATES = 48  # of which the best one is taken
RANDOM = 0.2  # the share of random programs
ROOM = 128  # features that plans may have


class Guide:
    """An iterator over items for `sweep`, which reports each result to `learn`."""

    def __init__(self, first: int, count: int, pairs: Pairs, wanted: int) -> None:
        self.next_seed, self.end = first, first + count
        self.rng = random.Random(first)
        self.pairs, self.wanted = pairs, wanted
        self.names: dict[str, int] = {}
        self.runs: dict[tuple[str, str], int] = {}
        self.with_feature: dict[tuple[str, str], np.ndarray] = {}
        self.missing = np.zeros((ROOM, ROOM))
        self.since_update = 0

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self.next_seed >= self.end:
            raise StopIteration
        seed = self.next_seed
        self.next_seed += 1
        if self.rng.random() < RANDOM or not self.runs:
            return self.candidate(seed) if self.rng.random() < 0.5 else seed
        candidates = [self.candidate(seed) for _ in range(CANDIDATES)]
        chances = np.array([self.chances(candidate) for candidate in candidates])
        gain = np.einsum("ci,ij,cj->c", chances, self.missing, chances)
        return candidates[int(gain.argmax())]

    def candidate(self, seed: int) -> Chosen:
        """A kind of kernel and two or three pieces that it may have."""
        kind = self.rng.choice(tuple(KINDS))
        flat = tuple(FLAT)
        if kind.startswith("block"):
            blocks = (*BLOCK, *BLOCK_2D) if kind == "block two" else tuple(BLOCK)
            pieces = [self.rng.choice(flat), self.rng.choice(blocks)]
            pieces += [self.rng.choice(blocks)] if self.rng.random() < 0.4 else []
        else:
            pieces = [self.rng.choice(flat) for _ in range(self.rng.choice((2, 2, 3)))]
        return Chosen(seed, tuple(pieces), kind, plain=False)

    def chances(self, item: Chosen) -> np.ndarray:
        """How likely each feature is in the plan of an item, if its pieces are independent of each other."""
        absent = np.ones(ROOM)
        for piece in item.pieces:
            key = (item.kind, piece)
            if key in self.runs:
                absent *= 1 - self.with_feature[key] / (self.runs[key] + 1)
            else:
                absent *= 0.95  # not tried yet
        return 1 - absent

    def learn(self, item: Item, plans: tuple[tuple[str, ...], ...]) -> None:
        """Counts the features of an item's plans."""
        if not isinstance(item, int):
            found = {self.names.setdefault(name, len(self.names)) for names in plans for name in names}
            assert len(self.names) <= ROOM
            for piece in item.pieces:
                key = (item.kind, piece)
                self.runs[key] = self.runs.get(key, 0) + 1
                self.with_feature.setdefault(key, np.zeros(ROOM))[list(found)] += 1
        self.since_update += 1
        if self.since_update >= 200:
            self.update()

    def update(self) -> None:
        """Finds the pairs that are still missing."""
        self.since_update = 0
        self.missing[:] = 0
        for one, i in self.names.items():
            for two, j in self.names.items():
                if one < two and not reason(one, two):
                    count = self.pairs.pairs[one, two]
                    self.missing[i, j] = max(0, self.wanted - count) / self.wanted
