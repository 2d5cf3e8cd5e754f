"""Profiles as one HTML file that needs no other: the source with heat by line, the findings, the bounds and the PTX."""

from __future__ import annotations

import linecache
import re
from collections import defaultdict
from html import escape

from weft._profile_text import ESTIMATED, duration, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.profile import Access, Finding, Line, Profile

_STYLE = """
:root { --back: #fff; --text: #1b1b1b; --soft: #5b5b5b; --rule: #d8d8d8; --panel: #f5f5f5; --heat: 214 60 20;
  --link: #0b57a4 }
@media (prefers-color-scheme: dark) {
  :root { --back: #161616; --text: #eaeaea; --soft: #a9a9a9; --rule: #3a3a3a; --panel: #212121; --heat: 255 122 69;
    --link: #8ab8f0 }
}
body { background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto;
  max-width: 75rem; padding: 0 1rem }
a { color: var(--link) }
h1 { font-size: 1.5rem } h2 { font-size: 1.25rem; margin-top: 2.5rem } h3 { font-size: 1.05rem }
code, pre, .source { font-family: ui-monospace, monospace; font-size: .9em }
table { border-collapse: collapse; width: 100% }
th, td { padding: .15rem .5rem; text-align: right; vertical-align: top; white-space: nowrap }
th { border-bottom: 1px solid var(--rule); color: var(--soft); font-weight: 600 }
td.source, th.source { text-align: left; white-space: pre-wrap; width: 99% }
.scroll { overflow-x: auto }
.soft { color: var(--soft) }
.finding { background: var(--panel); border-left: .3rem solid rgb(var(--heat)); margin: .8rem 0; padding: .5rem .9rem }
.bar { background: rgb(var(--heat) / .75); display: inline-block; height: .8em; min-width: 1px }
pre { background: var(--panel); overflow-x: auto; padding: .5rem }
summary { cursor: pointer }
:target { outline: 2px solid var(--link) }
""".strip()


def page(profiles: list[Profile]) -> str:
    """Give the page of the profiles of a program."""
    names = ", ".join(dict.fromkeys(profile.kernel for profile in profiles)) or "no kernel"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Profile of {escape(names)}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>Profile of {escape(names)}</h1>",
    ]
    if len(profiles) > 1:
        links = (
            f'<li><a href="#launch{number}">{escape(title(profile))}</a></li>'
            for number, profile in enumerate(profiles)
        )
        parts.append(f"<nav aria-label='Launches'><ol>{''.join(links)}</ol></nav>")
    for number, profile in enumerate(profiles):
        parts.extend(_launch(number, profile))
    parts.append("</main></body></html>")
    return "\n".join(parts) + "\n"


def _launch(number: int, profile: Profile) -> list[str]:
    parts = [
        f'<section aria-labelledby="launch{number}"><h2 id="launch{number}">{escape(title(profile))}</h2>',
        f'<p class="soft">{escape(", ".join(profile.types))}</p>',
    ]
    if profile.is_sampled:
        parts.append(
            f"<p>{profile.blocks_run:,} of {profile.blocks:,} blocks ran, counts are scaled (standard error "
            f"{100 * profile.error:.2g} %).</p>"
        )
    parts.append("<h3>What costs time</h3>")
    parts.extend(_finding(number, profile, found) for found in profile.findings)
    if not profile.findings:
        parts.append("<p>Nothing costs more than 2 % of the bound.</p>")
    parts.extend(_bounds(profile))
    parts.extend(_arrays(profile))
    parts.extend(_source(number, profile))
    parts.append("</section>")
    return parts


def _finding(number: int, profile: Profile, found: Finding) -> str:
    at = _anchor(number, profile, found.file, found.line)
    help_ = f"<br>Help: {escape(found.help)}" if found.help else ""
    return (
        f'<div class="finding"><strong>{escape(found.kind)}</strong>, {100 * found.share:.0f} % of the bound, '
        f'<a href="#{at}">line {found.line}</a>: <code>{escape(found.text)}</code><br>{escape(found.cost)}<br>'
        f"Cause: {escape(found.cause)}{help_}</div>"
    )


def _anchor(number: int, profile: Profile, file: str, line: int) -> str:
    files = list(dict.fromkeys(each.file for each in profile.lines))
    return f"l{number}f{files.index(file) if file in files else 0}n{line}"


def _bounds(profile: Profile) -> list[str]:
    parts = [
        "<h3>At least</h3><p>The time for which each resource is busy. A launch takes longer than the longest. Those "
        f"of {' and '.join(ESTIMATED)} are estimates.</p>"
    ]
    longest = max((seconds for _, seconds in profile.bounds), default=0.0)
    rows = [
        f"<tr><td>{escape(name)}</td><td>{duration(seconds)}</td>"
        f'<td class="source"><span class="bar" style="width: {100 * seconds / longest:.1f}%"></span></td></tr>'
        for name, seconds in profile.bounds
        if seconds > 0
    ]
    parts.append(
        f'<table><thead><tr><th>resource</th><th>time</th><th class="source"></th></tr></thead>{"".join(rows)}</table>'
    )
    occupancy = profile.occupancy
    if occupancy is not None:
        estimated = " (an estimate)" if occupancy.registers_are_estimated else ""
        advice = f" To raise it: {escape(occupancy.advice)}." if occupancy.advice else ""
        parts.append(
            f"<p>{occupancy.registers} registers a thread{estimated}, {occupancy.shared_bytes:,} bytes of shared "
            f"memory a block; occupancy {escape(occupancy.text)}.{advice}</p>"
        )
    return parts


def _arrays(profile: Profile) -> list[str]:
    rows = [
        f"<tr><td>{escape(array.name)}</td><td>{array.nbytes:,}</td><td>{array.touched:,}</td><td>{array.moved:,}</td></tr>"
        for array in profile.arrays
    ]
    head = "<tr><th>array</th><th>bytes</th><th>distinct bytes accessed</th><th>bytes in sectors</th></tr>"
    return [f'<h3>Arrays</h3><div class="scroll"><table><thead>{head}</thead>{"".join(rows)}</table></div>']


def _source(number: int, profile: Profile) -> list[str]:
    """Give the source of each file from its first line with counts to its last one."""
    parts = [
        "<h3>Source</h3><p>Lines with many instructions or sectors are warm. Open a line for its accesses and PTX.</p>"
    ]
    ptx = ptx_by_line(profile.ptx)
    by_file: dict[str, dict[int, Line]] = defaultdict(dict)
    for line in profile.lines:
        by_file[line.file][line.line] = line
    most = max((_weight(line) for line in profile.lines), default=0.0)
    head = "".join(
        f"<th>{name}</th>" for name in ("line", "instr.", "lanes", "sectors", "ideal", "wavefronts", "needed")
    )
    for file, lines in by_file.items():
        rows = []
        for at in range(min(lines), max(lines) + 1):
            text = linecache.getline(file, at).rstrip("\n")
            anchor = _anchor(number, profile, file, at)
            rows.append(_row(anchor, at, text, lines.get(at), most, ptx.get((file, at), [])))
        parts.append(
            f'<p><code>{escape(file or "no file")}</code></p><div class="scroll"><table><thead><tr>{head}'
            f'<th class="source">source</th></tr></thead>{"".join(rows)}</table></div>'
        )
    return parts


def _weight(line: Line) -> float:
    """Give the heat of a line: sectors and wavefronts occupy a multiprocessor as one instruction does, or longer."""
    return line.instructions / 4 + line.total("global", "sectors") / 4 + line.total("shared", "wavefronts")


def _row(anchor: str, at: int, text: str, line: Line | None, most: float, ptx: list[str]) -> str:
    if line is None:
        return (
            f'<tr id="{anchor}"><td class="soft">{at}</td>{"<td></td>" * 6}<td class="source">{escape(text)}</td></tr>'
        )
    heat = _weight(line) / most if most else 0.0
    counts = [f"{line.instructions:,}", f"{line.active_lanes:.1f}"]
    for space, names in (("global", ("sectors", "ideal_sectors")), ("shared", ("wavefronts", "ideal_wavefronts"))):
        totals = [line.total(space, name) for name in names]
        counts.extend(f"{total:,}" if totals[0] else "" for total in totals)
    cells = "".join(f"<td>{count}</td>" for count in counts)
    details = _details(line, ptx)
    shown = f"<details><summary>{escape(text)}</summary>{details}</details>" if details else escape(text)
    return (
        f'<tr id="{anchor}" style="background: rgb(var(--heat) / {0.45 * heat:.2f})"><td class="soft">{at}</td>{cells}'
        f'<td class="source">{shown}</td></tr>'
    )


def _details(line: Line, ptx: list[str]) -> str:
    parts = []
    if line.accesses:
        parts.append(f"<ul>{''.join(f'<li>{escape(_sentence(access))}</li>' for access in line.accesses)}</ul>")
    if line.operations:
        operations = ", ".join(f"{count:,} {name}" for name, count in line.operations.items())
        parts.append(f"<p>Operations: {escape(operations)}</p>")
    if line.divergent_branches:
        parts.append(f"<p>Warps diverge {line.divergent_branches:,} times.</p>")
    if ptx:
        parts.append(f"<pre>{escape(chr(10).join(ptx))}</pre>")
    return "".join(parts)


def _sentence(access: Access) -> str:
    name = access.source or access.array or access.space
    counts = f"{access.requests:,} requests"
    if access.sectors:
        counts += f", {access.sectors:,} sectors ({access.ideal_sectors:,} ideal)"
    if access.wavefronts:
        counts += f", {access.wavefronts:,} wavefronts ({access.ideal_wavefronts:,} needed)"
    stride = "" if access.stride is None else f"; consecutive threads are {access.stride:,} bytes apart"
    return f"{access.kind} of {name} in {access.space} memory: {counts}{stride}"


def ptx_by_line(ptx: str) -> dict[tuple[str, int], list[str]]:
    """Give the instructions of PTX by file and line of the source."""
    files = {int(number): name for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.MULTILINE)}
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    place: tuple[str, int] | None = None
    for line in ptx.splitlines():
        stripped = line.strip()
        if location := re.match(r"\.loc\s+(\d+)\s+(\d+)", stripped):
            place = files.get(int(location[1]), ""), int(location[2])
        elif stripped.startswith((".visible", "}")):
            place = None
        elif place is not None and stripped.endswith(";") and not stripped.startswith("."):
            found[place].append(stripped)
    return found
