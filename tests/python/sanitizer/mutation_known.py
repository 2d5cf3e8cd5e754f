"""Mutants that the sanitizer does not find, each with the reason: what was deleted makes no fault there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutation import Mutant

BARRIER = "cuda.syncthreads()"

KNOWN: dict[tuple[str, str, str, str], str] = {
    ("dynamic.py", "barrier", BARRIER, "score[0, 0] = 0"): (
        "in the first turn thread 0 alone goes on, with what it has written itself, and a barrier follows"
    ),
    ("dynamic.py", "barrier", BARRIER, "old[0] = 1"): (
        "in the first turn thread 0 alone goes on, with what it has written itself, and a barrier follows"
    ),
    ("dynamic.py", "barrier", BARRIER, "older[0] = old[0]"): "each thread goes on with the elements that are its own",
    ("dynamic.py", "initialization", "older[i] = 0", "i = tid + 1"): "it is written again before anybody reads it",
    ("dynamic.py", "guard", "if j >= 0 and j <= n:", BARRIER): "the element is the thread's own: the result is wrong",
    ("scans.py", "initialization", "tree[511] = ZERO", "totals[cuda.blockIdx.x] = tree[511]"): (
        "the element was written before: the result is wrong"
    ),
    ("scans.py", "barrier", BARRIER, "d *= 2"): "in the last turn each thread has the elements that it stores",
}
"""By file, kind, the line as it was, and the line before it."""


def reason(known: dict[tuple[str, str, str, str], str], mutant: Mutant) -> str | None:
    """Why a mutant is not found; None if that is not explained."""
    return known.get((mutant.path.name, mutant.kind, mutant.text, mutant.before))
