"""Mutants that the sanitizer does not find, each with the reason: what was deleted makes no difference there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutation import Mutant

KNOWN: dict[tuple[str, str, str], str] = {}
"""By file, kind, and the line as it was; an empty kind or line stands for all."""


def reason(known: dict[tuple[str, str, str], str], mutant: Mutant) -> str | None:
    """Why a mutant is not found; None if that is not explained."""
    file = mutant.path.name
    keys = [(file, mutant.kind, mutant.text), (file, mutant.kind, ""), (file, "", mutant.text)]
    return next((known[key] for key in keys if key in known), None)
