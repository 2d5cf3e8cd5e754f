"""The changes from one profile to another, both written as JSON."""

from __future__ import annotations

import json

from weft.profile import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_COUNTS = ("sectors", "ideal_sectors", "l2_requests", "wavefronts", "ideal_wavefronts", "requests")


def compared(before: Path, after: Path) -> str:
    """Compare two files, kernel by kernel.

    Raises
    ------
    ValueError
        A file is not a profile, or the files have no kernel in common.
    """
    old, new = _read(before), _read(after)
    common = [name for name in old if name in new]
    if not common:
        msg = f"{before} and {after} have no kernel in common: {', '.join(old) or 'none'}; {', '.join(new) or 'none'}"
        raise ValueError(msg)
    parts = ["\n".join(_kernel(name, old[name], new[name])) for name in common]
    parts.extend(f"{name}: only in {before}" for name in old if name not in new)
    parts.extend(f"{name}: only in {after}" for name in new if name not in old)
    return "\n\n".join(parts) + "\n"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Give the profiles of a file by kernel; those of several launches of one kernel are numbered."""
    try:
        profiles = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        msg = f"{path} is not JSON: {error}"
        raise ValueError(msg) from error
    profiles = profiles if isinstance(profiles, list) else [profiles]
    named: dict[str, dict[str, Any]] = {}
    for profile in profiles:
        if not isinstance(profile, dict) or profile.get("schema") != SCHEMA:
            msg = f"{path} is not a profile of this version: write it with `weft profile --format json`"
            raise ValueError(msg)
        name, number = profile["kernel"], 2
        while name in named:
            name, number = f"{profile['kernel']} ({number})", number + 1
        named[name] = profile
    return named


def _totals(profile: dict[str, Any]) -> dict[str, float]:
    totals: dict[str, float] = {"warp instructions": sum(line["instructions"] for line in profile["lines"])}
    for space in ("global", "shared", "local", "constant"):
        for count in _COUNTS:
            accesses = [access for line in profile["lines"] for access in line["accesses"]]
            totals[f"{space} {count.replace('_', ' ')}"] = sum(
                access[count] for access in accesses if access["space"] == space
            )
    for resource, seconds in profile["bounds"]:
        totals[f"seconds by {resource}"] = seconds
    occupancy = profile["occupancy"]
    if occupancy:
        totals["registers"] = occupancy["registers"]
        totals["resident warps"] = occupancy["warps"]
    return totals


def _kernel(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = _totals(old), _totals(new)
    rows = []
    for key in [*before, *(key for key in after if key not in before)]:
        one, two = before.get(key, 0), after.get(key, 0)
        if one != two:
            ratio = f"{two / one:.2f} times" if one else "new"
            rows.append((key, _number(one), _number(two), ratio))
    lines = [f"{name}:" if rows else f"{name}: the counts are the same"]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    for row in rows:
        key, *cells = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(f"  {key}  {cells[0]} -> {cells[1]}  {cells[2]}")
    gone = [each for each in old["findings"] if not _is_in(each, new["findings"])]
    come = [each for each in new["findings"] if not _is_in(each, old["findings"])]
    lines.extend(f"  gone: {each['kind']}, `{each['text']}`" for each in gone)
    lines.extend(f"  new: {each['kind']}, line {each['line']}, `{each['text']}`" for each in come)
    return lines


def _is_in(finding: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    return any((finding["kind"], finding["text"]) == (other["kind"], other["text"]) for other in others)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
