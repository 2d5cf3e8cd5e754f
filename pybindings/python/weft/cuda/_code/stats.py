"""How often a dispatcher's kernels were found on the disk."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft._weft import Type


class CompileStats(NamedTuple):
    """Hits and misses of a dispatcher, by the types of a kernel's arguments.

    `numba.cuda`'s dispatchers have the same three fields.
    """

    cache_path: str | None
    """The folder of the disk cache; None if it is off."""
    cache_hits: Counter[tuple[Type, ...]]
    """Kernels that were found in the cache, on the disk or in this process."""
    cache_misses: Counter[tuple[Type, ...]]
    """Kernels that were compiled."""


def of_counts(folder: str | None, counts: list[tuple[tuple[Type, ...], int, int]]) -> CompileStats:
    """Make the statistics of each kernel's types with its hits and misses."""
    hits = Counter({types: hits for types, hits, _ in counts if hits})
    misses = Counter({types: misses for types, _, misses in counts if misses})
    return CompileStats(folder, hits, misses)
