"""Profiles as one HTML file that needs no other: the source with heat by line, the findings, the bounds and the PTX."""

from __future__ import annotations

import linecache
from collections import defaultdict
from html import escape

from weft import _profile_svg
from weft._profile_code import differences, ptx_by_line, sass_by_line
from weft._profile_text import ESTIMATED, caller, duration, title, waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.profile import Access, Calls, Finding, Line, Profile

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --soft: #5b5b5b; --rule: #d8d8d8; --panel: #f5f5f5;
  --heat: 214 60 20; --mark: #b3400f; --link: #0b57a4 }
@media (prefers-color-scheme: dark) {
  :root { --back: #161616; --text: #eaeaea; --soft: #a9a9a9; --rule: #3a3a3a; --panel: #212121; --heat: 255 122 69;
    --mark: #ff8a5c; --link: #8ab8f0 }
}
body { background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto;
  max-width: 75rem; overflow-wrap: anywhere; padding: 0 1rem }
a { color: var(--link) }
:focus-visible { outline: 3px solid var(--link); outline-offset: 1px }
h1 { font-size: 1.5rem } h2 { font-size: 1.25rem; margin-top: 2.5rem } h3 { font-size: 1.05rem }
code, pre, .source { font-family: ui-monospace, monospace; font-size: .9em }
table { border-collapse: collapse; width: 100% }
th, td { overflow-wrap: normal; padding: .15rem .5rem; text-align: right; vertical-align: top; white-space: nowrap }
th { border-bottom: 1px solid var(--rule); color: var(--soft); font-weight: 600 }
td.source, th.source { text-align: left; white-space: pre-wrap; width: 99% }
th.source, td.source { min-width: 18rem }
.scroll { overflow-x: auto; position: relative }
.soft { color: var(--soft) }
.finding { background: var(--panel); border-left: .3rem solid var(--mark); margin: .8rem 0; padding: .5rem .9rem }
.bar { background: rgb(var(--heat) / .75); display: inline-block; height: .8em; min-width: 1px }
.tip { background: var(--panel); border: 1px solid var(--rule); display: none; font: 13px/1.4 system-ui, sans-serif;
  margin: .2rem 0; padding: .2rem .5rem; white-space: normal }
tr:hover .tip, tr:focus-within .tip { display: block }
pre { background: var(--panel); margin: 0; overflow-x: auto; padding: .5rem }
.pair { display: grid; gap: .5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)) }
.pair > div, .pictures > * { min-width: 0 }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem }
figure { margin: .5rem 0; max-width: 100%; overflow-x: auto }
figcaption { color: var(--soft); font: 13px/1.4 system-ui, sans-serif; white-space: normal }
svg { display: block; height: auto; max-width: 100% }
svg text { fill: var(--text); font: 12px system-ui, sans-serif }
.grid, .frame { fill: none; stroke: var(--rule) } .gap { stroke: var(--soft); stroke-dasharray: 2 2 }
.roof { fill: none; stroke: var(--text); stroke-width: 1.5 }
.point, .own, .arrow { fill: var(--mark) } .other { fill: var(--soft); fill-opacity: .45 }
summary { cursor: pointer }
:target { outline: 2px solid var(--link) }
""".strip()


def page(profiles: list[Profile]) -> str:
    """Give the page of the profiles of a program."""
    names = ", ".join(dict.fromkeys(profile.kernel for profile in profiles)) or "no kernel"
    parts = []
    if len(profiles) > 1:
        links = (
            f'<li><a href="#launch{number}">{escape(title(profile))}</a></li>'
            for number, profile in enumerate(profiles)
        )
        parts.append(f"<nav aria-label='Launches'><ol>{''.join(links)}</ol></nav>")
    for number, profile in enumerate(profiles):
        parts.extend(_launch(number, profile))
    return document(f"Profile of {names}", parts)


def document(heading: str, parts: Iterable[str]) -> str:
    """Give a page with a heading."""
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(heading)}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{escape(heading)}</h1>",
            *parts,
            "</main></body></html>\n",
        )
    )


def scrolled(label: str, inner: str) -> str:
    """Give a part that scrolls where it is too wide; the keyboard can scroll it, too."""
    return f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">{inner}</div>'


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
    parts.extend(_roofline(profile))
    parts.extend(_occupancy(profile))
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
        f'<td class="source"><span class="bar" style="width: {80 * seconds / longest:.1f}%"></span> '
        f"{100 * seconds / longest:.0f} %</td></tr>"
        for name, seconds in profile.bounds
        if seconds > 0
    ]
    head = '<tr><th>resource</th><th>time</th><th class="source">part of the longest</th></tr>'
    parts.append(scrolled("Bounds", f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"))
    return parts


def _roofline(profile: Profile) -> list[str]:
    drawn = _profile_svg.roofline(profile)
    if not drawn:
        return []
    return [
        "<h3>Roofline</h3>",
        "<p>The most operations a second for the bytes that the launch moves on each level of memory. The lowest mark "
        "limits it; a launch reaches less. Lines: the bandwidth of a level, and the rate of operations, where a fused "
        f"multiply-add is one.</p><figure>{drawn}</figure>",
    ]


def _occupancy(profile: Profile) -> list[str]:
    occupancy = profile.occupancy
    if occupancy is None:
        return []
    estimated = " (an estimate)" if occupancy.registers_are_estimated else ""
    advice = f" To raise it: {escape(occupancy.advice)}." if occupancy.advice else ""
    threads = profile.blockdim[0] * profile.blockdim[1] * profile.blockdim[2]
    drawn = _profile_svg.occupancy(occupancy, threads)
    return [
        f"<h3>Occupancy</h3><p>{occupancy.registers} registers a thread{estimated}, {occupancy.shared_bytes:,} bytes "
        f"of shared memory a block; occupancy {escape(occupancy.text)}.{advice}</p>",
        f"<figure>{drawn}</figure>" if drawn else "",
    ]


def _arrays(profile: Profile) -> list[str]:
    rows = [
        f"<tr><td>{escape(array.name)}</td><td>{array.nbytes:,}</td><td>{array.touched:,}</td><td>{array.moved:,}</td></tr>"
        for array in profile.arrays
    ]
    head = "<tr><th>array</th><th>bytes</th><th>distinct bytes accessed</th><th>bytes in sectors</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return ["<h3>Arrays</h3>", scrolled("Arrays", table)]


def _source(number: int, profile: Profile) -> list[str]:
    """Give the source of each file from its first line with counts to its last one."""
    parts = [
        "<h3>Source</h3><p>The cost of a line is its part of the sectors, wavefronts and instructions of the launch, "
        "each weighted by the time that it occupies a multiprocessor. Open a line for its accesses and its code.</p>"
    ]
    ptx, sass = ptx_by_line(profile.ptx), sass_by_line(profile.sass)
    by_file: dict[str, dict[int, Line]] = defaultdict(dict)
    for line in profile.lines:
        by_file[line.file][line.line] = line
    costs = _Costs(profile)
    names = ("cost", "instr.", "lanes", "sectors", "ideal", "wavefronts", "needed")
    head = f'<th>line</th><th class="source">source</th>{"".join(f"<th>{name}</th>" for name in names)}'
    for file, lines in by_file.items():
        rows = []
        for at in range(min(lines), max(lines) + 1):
            text = linecache.getline(file, at).rstrip("\n")
            anchor = _anchor(number, profile, file, at)
            code = ptx.get((file, at), []), sass.get((file, at), [])
            rows.append(_row(anchor, (at, text), lines.get(at), costs, code))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        parts.append(f"<p><code>{escape(file or 'no file')}</code></p>")
        parts.append(scrolled(f"Source of {file or 'no file'}", table))
    return parts


class _Costs:
    """The parts of the lines of the work of a launch."""

    def __init__(self, profile: Profile) -> None:
        self.instructions = sum(line.instructions for line in profile.lines)
        self.sectors = profile.total("global", "sectors")
        self.wavefronts = profile.total("shared", "wavefronts")
        self.all = sum(map(self.weight, profile.lines))
        self.most = max(map(self.weight, profile.lines), default=0.0)

    @staticmethod
    def weight(line: Line) -> float:
        """Give the clocks of a multiprocessor: it does four instructions, four sectors or a wavefront in one."""
        return line.instructions / 4 + line.total("global", "sectors") / 4 + line.total("shared", "wavefronts")

    def tip(self, line: Line) -> str:
        """Show the parts of a line."""
        parts = [(line.instructions, self.instructions, "instructions")]
        parts.append((line.total("global", "sectors"), self.sectors, "sectors"))
        parts.append((line.total("shared", "wavefronts"), self.wavefronts, "wavefronts"))
        shown = [f"{100 * own / whole:.0f} % of all {name}" for own, whole, name in parts if own]
        if line.divergent_branches:
            shown.append(f"warps diverge {line.divergent_branches:,} times")
        if line.barrier_waits:
            shown.append(f"warps wait at the barrier for {waiting(line)} of the time since the one before")
        return ", ".join(shown)


def _row(
    anchor: str, source: tuple[int, str], line: Line | None, costs: _Costs, code: tuple[list[str], list[str]]
) -> str:
    at, text = source
    if line is None:
        return (
            f'<tr id="{anchor}"><td class="soft">{at}</td><td class="source">{escape(text)}</td>{"<td></td>" * 7}</tr>'
        )
    weight = costs.weight(line)
    heat = weight / costs.most if costs.most else 0.0
    percent = f"{100 * weight / costs.all:.0f} %" if costs.all else ""
    counts = [percent, f"{line.instructions:,}", f"{line.active_lanes:.1f}"]
    for space, names in (("global", ("sectors", "ideal_sectors")), ("shared", ("wavefronts", "ideal_wavefronts"))):
        totals = [line.total(space, name) for name in names]
        counts.extend(f"{total:,}" if totals[0] else "" for total in totals)
    cells = "".join(f"<td>{count}</td>" for count in counts)
    tip = f'<span class="tip" role="note">{escape(costs.tip(line))}</span>'
    return (
        f'<tr id="{anchor}" style="background: rgb(var(--heat) / {0.45 * heat:.2f})"><td class="soft">{at}</td>'
        f'<td class="source"><details><summary>{escape(text)}</summary>{_details(line, *code)}</details>{tip}</td>'
        f"{cells}</tr>"
    )


def _details(line: Line, ptx: list[str], sass: list[str]) -> str:
    parts = []
    if line.accesses:
        parts.append(f"<ul>{''.join(f'<li>{_access(access)}</li>' for access in line.accesses)}</ul>")
    if line.calls:
        items = "".join(f"<li>{escape(_caller(line, calls))}</li>" for calls in line.calls)
        parts.append(f"<p>Callers:</p><ul>{items}</ul>")
    if line.operations:
        operations = ", ".join(f"{count:,} {name}" for name, count in line.operations.items())
        parts.append(f"<p>Operations: {escape(operations)}</p>")
    if line.divergent_branches:
        parts.append(f"<p>Warps diverge {line.divergent_branches:,} times.</p>")
    if line.barrier_waits:
        parts.append(f"<p>Warps wait at the barrier for {waiting(line)} of the time since the one before.</p>")
    parts.extend(f"<p>{escape(difference)}.</p>" for difference in differences(line, ptx, sass))
    for name, code in (("PTX", ptx), ("Machine code", sass)):
        if code:
            parts.append(f"<p>{name}:</p><pre>{escape(chr(10).join(code))}</pre>")
    return "".join(parts)


def _access(access: Access) -> str:
    """Give what an access counts, with pictures of its first requests."""
    drawn = _profile_svg.access(access)
    if not drawn:
        return escape(_sentence(access))
    what = "the banks of its words" if access.space == "shared" else "the sectors of its bytes"
    caption = f"The first requests of {access.source or access.array or 'the line'}: by lane, {what}."
    pictures = "".join(f"<div>{picture}</div>" for picture in drawn)
    return (
        f"{escape(_sentence(access))}<figure><div class='pictures'>{pictures}</div>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _caller(line: Line, calls: Calls) -> str:
    counts = [(calls.instructions, "instructions"), (calls.sectors, "sectors"), (calls.wavefronts, "wavefronts")]
    return f"{caller(line, calls)}: {', '.join(f'{count:,} {name}' for count, name in counts if count)}"


def _sentence(access: Access) -> str:
    name = access.source or access.array or access.space
    counts = f"{access.requests:,} requests"
    if access.sectors:
        counts += f", {access.sectors:,} sectors ({access.ideal_sectors:,} ideal)"
    if access.wavefronts:
        counts += f", {access.wavefronts:,} wavefronts ({access.ideal_wavefronts:,} needed)"
    stride = "" if access.stride is None else f"; consecutive threads are {access.stride:,} bytes apart"
    return f"{access.kind} of {name} in {access.space} memory: {counts}{stride}"
