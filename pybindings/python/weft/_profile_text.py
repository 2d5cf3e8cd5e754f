"""Profiles as text for a terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.profile import Access, Calls, Finding, Line, Profile

ESTIMATED = ("integers", "instruction issue", "L2")
"""The resources whose work is counted in the PTX, of which ``ptxas`` merges and removes a part: no lower bounds."""

_CALLERS = 4
"""The callers of a line that are shown."""

_UNITS = ((1e-9, "ns", 1e9), (1e-6, "ns", 1e9), (1e-3, "µs", 1e6), (1.0, "ms", 1e3))


def duration(value: float) -> str:
    """Show seconds with a unit."""
    for limit, unit, factor in _UNITS:
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def finding(found: Finding) -> str:
    """Show a finding with its line."""
    name = found.file.rsplit("/", 1)[-1]
    lines = [
        f"{found.kind} at {name}, line {found.line}: {100 * found.share:.0f} % of the bound",
        f"    {found.text}",
        f"  {found.cost}",
        f"  cause: {found.cause}",
    ]
    if found.help:
        lines.append(f"  help: {found.help}")
    return "\n".join(lines)


def waiting(line: Line) -> str:
    """Show the part of the time since the barrier before for which the warps of a block wait."""
    return f"{100 * line.barrier_waits / (line.barrier_work + line.barrier_waits):.0f} %"


def report(profile: Profile) -> str:
    """Show a profile: the launch, its bounds, its lines and its findings."""
    config = f"[{_dims(profile.griddim)}, {_dims(profile.blockdim)}]"
    head = [f"{profile.kernel}{config}({', '.join(profile.types)}) on {profile.gpu}"]
    if profile.launches > 1:
        head.append(f"  one of {profile.launches:,} launches")
    if profile.is_sampled:
        head.append(
            f"  {profile.blocks_run:,} of {profile.blocks:,} blocks ran, counts are scaled "
            f"(standard error {100 * profile.error:.2g} %)"
        )
    head.extend(_summary(profile))
    body = [*head, "", *_table(profile)]
    for each in profile.findings:
        body.extend(("", finding(each)))
    if not profile.findings:
        body.extend(("", "nothing costs more than 2 % of the bound"))
    return "\n".join(body)


def title(profile: Profile) -> str:
    """Show the kernel, the launch configuration and the GPU."""
    return f"{profile.kernel}[{_dims(profile.griddim)}, {_dims(profile.blockdim)}] on {profile.gpu}"


def bound(profile: Profile) -> str:
    """Show the longest time that a resource is busy, without the estimates; empty if there is none."""
    firm = [(name, time) for name, time in profile.bounds if name not in ESTIMATED and time > 0]
    return f"{duration(firm[0][1])} by {firm[0][0]}" if firm else ""


def _dims(extents: tuple[int, int, int]) -> str:
    """Show the extents of a grid or a block as a launch has them."""
    shown = list(extents)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return str(shown[0]) if len(shown) == 1 else f"({', '.join(map(str, shown))})"


def _summary(profile: Profile) -> list[str]:
    lines = []
    firm = [(name, time) for name, time in profile.bounds if name not in ESTIMATED and time > 0]
    if firm:
        rest = "".join(f", {duration(time)} by {name}" for name, time in firm[1:3])
        lines.append(f"  at least {duration(firm[0][1])} by {firm[0][0]}{rest}")
    others = [f"{duration(time)} by {name}" for name, time in profile.bounds if name in ESTIMATED and time > 0]
    if others:
        lines.append(f"  estimated: {', '.join(others)}")
    occupancy = profile.occupancy
    if occupancy is not None:
        estimated = " (an estimate)" if occupancy.registers_are_estimated else ""
        lines.append(f"  {occupancy.registers} registers a thread{estimated}; occupancy {occupancy.text}")
    for array in profile.arrays:
        times = f", {array.moved / array.touched:.1f} times its distinct bytes" if array.touched else ""
        lines.append(f"  {array.name}: {array.moved:,} bytes in sectors{times}")
    return lines


_HEAD = ("line", "instr.", "lanes", "access", "requests", "sectors", "ideal", "wavefronts", "needed")


def _table(profile: Profile) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEAD]
    texts = [""]
    file = ""
    for line in profile.lines:
        if line.file != file:
            file = line.file
            rows.append((file,))
            texts.append("")
        for number, cells in enumerate(_cells(line)):
            rows.append(cells)
            texts.append(line.text.strip() if number == 0 else "")
    widths = [max(len(row[at]) for row in rows if len(row) > 1) for at in range(len(_HEAD))]
    shown = []
    for row, text in zip(rows, texts, strict=True):
        if len(row) == 1:
            shown.append(row[0])
            continue
        padded = [
            cell.ljust(width) if at == 3 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        shown.append(f"{'  '.join(padded)}  {text}".rstrip())
    return shown


def caller(line: Line, calls: Calls) -> str:
    """Show from where a line of a device function is called: `called from line 12, line 30`."""
    shown, file = [], line.file
    for called_file, number in calls.chain:
        name = "" if called_file == file else f"{called_file.rsplit('/', 1)[-1]}, "
        shown.append(f"{name}line {number}")
        file = called_file
    return f"called from {', from '.join(shown)}"


def _cells(line: Line) -> list[tuple[str, ...]]:
    rows = _own_cells(line)
    for calls in line.calls[:_CALLERS]:
        sectors, wavefronts = (f"{count:,}" if count else "" for count in (calls.sectors, calls.wavefronts))
        rows.append(("", f"{calls.instructions:,}", "", caller(line, calls), "", sectors, "", wavefronts, ""))
    if len(line.calls) > _CALLERS:
        more = line.calls[_CALLERS:]
        count = sum(calls.instructions for calls in more)
        rows.append(("", f"{count:,}", "", f"called from {len(more)} other lines", *[""] * 5))
    return rows


def _own_cells(line: Line) -> list[tuple[str, ...]]:
    first = (str(line.line or "?"), f"{line.instructions:,}", f"{line.active_lanes:.1f}")
    if not line.accesses:
        return [(*first, f"barrier, waits {waiting(line)}" if line.barrier_waits else "", *[""] * 5)]
    rows = []
    for number, access in enumerate(line.accesses):
        rows.append(((*first,) if number == 0 else ("", "", "")) + _access(access))
    return rows


def _access(access: Access) -> tuple[str, ...]:
    name = access.source or access.array or access.space
    counts: tuple[str, ...]
    if access.space == "shared":
        counts = ("", "", f"{access.wavefronts:,}", f"{access.ideal_wavefronts:,}")
    else:
        counts = (f"{access.sectors:,}", f"{access.ideal_sectors:,}", "", "")
    return (f"{access.kind} {name}", f"{access.requests:,}", *counts)
