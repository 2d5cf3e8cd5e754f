"""The changes from one profile to another, both written as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from weft._profile_files import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from weft.profile import Finding, Profile

_COUNTS = ("sectors", "ideal_sectors", "l2_requests", "wavefronts", "ideal_wavefronts", "requests")


@dataclass(frozen=True)
class Change:
    """The profiles of a kernel before and after a change, and what differs.

    `rows` has the name of each count that differs with its two values, `gone` and `new` the findings of one profile
    only.
    """

    name: str
    before: Profile
    after: Profile
    rows: tuple[tuple[str, float, float], ...]
    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]


@dataclass(frozen=True)
class Comparison:
    """The changes between two files, and the names of kernels in one of them only."""

    before: Path
    after: Path
    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def compare(before: Path, after: Path) -> Comparison:
    """Compare two files, kernel by kernel.

    Raises
    ------
    ValueError
        A file is not a profile, or the files have no kernel in common.
    """
    old, new = _by_kernel(before), _by_kernel(after)
    common = [name for name in old if name in new]
    if not common:
        msg = f"{before} and {after} have no kernel in common: {', '.join(old) or 'none'}; {', '.join(new) or 'none'}"
        raise ValueError(msg)
    changes = tuple(_change(name, old[name], new[name]) for name in common)
    only_before = tuple(name for name in old if name not in new)
    only_after = tuple(name for name in new if name not in old)
    return Comparison(before, after, changes, only_before, only_after)


def _by_kernel(path: Path) -> dict[str, Profile]:
    """Give the profiles of a file by kernel; those of several launches of one kernel are numbered."""
    named: dict[str, Profile] = {}
    for profile in read(path):
        name, number = profile.kernel, 2
        while name in named:
            name, number = f"{profile.kernel} ({number})", number + 1
        named[name] = profile
    return named


def _change(name: str, old: Profile, new: Profile) -> Change:
    before, after = _totals(old), _totals(new)
    names = [*before, *(key for key in after if key not in before)]
    values = [(key, before.get(key, 0), after.get(key, 0)) for key in names]
    return Change(
        name=name,
        before=old,
        after=new,
        rows=tuple(row for row in values if row[1] != row[2]),
        gone=tuple(each for each in old.findings if not _is_in(each, new.findings)),
        new=tuple(each for each in new.findings if not _is_in(each, old.findings)),
    )


def _totals(profile: Profile) -> dict[str, float]:
    totals: dict[str, float] = {"warp instructions": sum(line.instructions for line in profile.lines)}
    for space in ("global", "shared", "local", "constant"):
        for count in _COUNTS:
            totals[f"{space} {count.replace('_', ' ')}"] = profile.total(space, count)
    for resource, seconds in profile.bounds:
        totals[f"seconds by {resource}"] = seconds
    if profile.occupancy is not None:
        totals["registers"] = profile.occupancy.registers
        totals["resident warps"] = profile.occupancy.warps
    return totals


def _is_in(finding: Finding, others: tuple[Finding, ...]) -> bool:
    return any((finding.kind, finding.text) == (other.kind, other.text) for other in others)


def text(comparison: Comparison) -> str:
    """Show the changes in a terminal."""
    parts = ["\n".join(_kernel(change)) for change in comparison.changes]
    parts.extend(f"{name}: only in {comparison.before}" for name in comparison.only_before)
    parts.extend(f"{name}: only in {comparison.after}" for name in comparison.only_after)
    return "\n\n".join(parts) + "\n"


def _kernel(change: Change) -> list[str]:
    rows = [(name, number(one), number(two), ratio(one, two)) for name, one, two in change.rows]
    lines = [f"{change.name}:" if rows else f"{change.name}: the counts are the same"]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    for row in rows:
        key, *cells = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(f"  {key}  {cells[0]} -> {cells[1]}  {cells[2]}")
    lines.extend(f"  gone: {each.kind}, `{each.text}`" for each in change.gone)
    lines.extend(f"  new: {each.kind}, line {each.line}, `{each.text}`" for each in change.new)
    return lines


def number(value: float) -> str:
    """Show a count or a time."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def ratio(before: float, after: float) -> str:
    """Show how many times a count is that of before."""
    return f"{after / before:.2f} times" if before else "new"
