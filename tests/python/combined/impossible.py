"""Pairs of features that no program can have together, each with the reason."""

from __future__ import annotations

IMPOSSIBLE: dict[tuple[str, str], str] = {}
