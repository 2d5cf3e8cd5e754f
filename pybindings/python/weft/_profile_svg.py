"""Pictures of a profile as SVG for a page: the roofline, the occupancy by block size, and the lanes' accesses.

Colors are variables of the page's style. Each picture has a text that says the same, and marks differ by shape too.
"""

from __future__ import annotations

import math
from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.profile import Access, Occupancy, Profile, Request

SECTOR = 32
BANKS = 32
_WAVEFRONT = 128
"""The bytes that a wavefront of shared memory moves at most."""


def _svg(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def si(value: float) -> str:
    """Show a number with a metric prefix."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "


# --- The roofline -----------------------------------------------------------------------------------------------------

_KINDS = {"float32": "float32", "float64": "float64", "int32": "integers"}
"""The types of operations with roofs, and the resources that execute them."""


def _levels(profile: Profile) -> dict[str, tuple[float, float]]:
    """Give by level of memory the bytes that the launch moves and the bytes of a second."""
    rates = dict(profile.rates)
    moved = {
        "device memory": (sum(array.touched for array in profile.arrays), 1),
        "L2": (profile.total("global", "l2_sectors"), SECTOR),
        "L1": (profile.total("global", "sectors"), SECTOR),
        "shared memory": (profile.total("shared", "wavefronts"), _WAVEFRONT),
    }
    return {
        name: (float(count * size), rates[name] * size)
        for name, (count, size) in moved.items()
        if count and name in rates
    }


def _operations(profile: Profile) -> tuple[str, int]:
    """Give the type whose operations take longest, and their number: integers where there are no floats."""
    rates = dict(profile.rates)
    counts = {
        kind: sum(line.operations.get(kind, 0) for line in profile.lines) for kind in _KINDS if _KINDS[kind] in rates
    }
    floats = {kind: count for kind, count in counts.items() if kind != "int32" and count}
    counts = floats or {kind: count for kind, count in counts.items() if count}
    if not counts:
        return "", 0
    kind = max(counts, key=lambda kind: counts[kind] / rates[_KINDS[kind]])
    return kind, counts[kind]


_MARKS = {
    "device memory": '<circle cx="{x:g}" cy="{y:g}" r="6"/>',
    "L2": '<path d="M{x:g} {y:g}m0 -8l8 14h-16z"/>',
    "L1": '<path d="M{x:g} {y:g}m-6 -6h12v12h-12z"/>',
    "shared memory": '<path d="M{x:g} {y:g}m0 -8l8 8l-8 8l-8 -8z"/>',
}


def roofline(profile: Profile) -> str:
    """Draw operations a second over operations a byte; empty if the launch computes or moves nothing.

    Each level of memory has a roof and, on it, the point of the kernel. The lowest point is the one that limits.
    """
    kind, operations = _operations(profile)
    levels = _levels(profile)
    if not operations or not levels:
        return ""
    peak = dict(profile.rates)[_KINDS[kind]]
    points = {
        name: (operations / moved, min(peak, operations / moved * rate)) for name, (moved, rate) in levels.items()
    }
    knees = [peak / rate for _, rate in levels.values()]
    low = math.floor(math.log10(min([x for x, _ in points.values()] + knees)) - 0.3)
    high = math.ceil(math.log10(max([x for x, _ in points.values()] + knees)) + 0.3)
    top = math.ceil(math.log10(peak) + 0.1)
    bottom = math.floor(math.log10(min([y for _, y in points.values()] + [peak / 1000])))
    width, height, left, base = 560, 300, 70, 250

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (math.log10(x) - low) / (high - low) * (width - left - 20),
            base - (math.log10(y) - bottom) / (top - bottom) * (base - 20),
        )

    parts = []
    for power in range(low, high + 1):
        x, _ = at(10.0**power, 10.0**bottom)
        parts.append(f'<line class="grid" x1="{x:g}" x2="{x:g}" y1="20" y2="{base}"/>')
        parts.append(_text(x, base + 18, f"{10.0**power:g}", "middle"))
    for power in range(bottom, top + 1):
        _, y = at(1.0, 10.0**power)
        parts.append(f'<line class="grid" x1="{left}" x2="{width - 20}" y1="{y:g}" y2="{y:g}"/>')
        parts.append(_text(left - 6, y + 4, si(10.0**power), "end"))
    parts.append(_text((left + width) / 2, base + 38, f"operations of {kind} for a byte", "middle"))
    parts.append(_text(4, 12, "operations a second"))
    for number, (_, rate) in enumerate(levels.values()):
        start = max(10.0**low, 10.0**bottom / rate)
        (x1, y1), (x2, y2), (x3, _) = at(start, start * rate), at(peak / rate, peak), at(10.0**high, peak)
        dashes = ("none", "12 4", "7 4", "2 3")[number]
        line = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}L{x3:.1f} {y2:.1f}"
        parts.append(f'<path class="roof" stroke-dasharray="{dashes}" d="{line}"/>')
    labels: list[tuple[float, float]] = []
    for name, (x, y) in points.items():
        across, up = at(x, y)
        parts.append(f'<g class="point">{_MARKS[name].format(x=across, y=up)}</g>')
        below = up + 16
        while any(abs(across - other) < 100 and abs(below - at_) < 13 for other, at_ in labels):
            below += 13
        labels.append((across, below))
        is_right = across > width - 150
        parts.append(_text(across - 11 if is_right else across + 11, below, name, "end" if is_right else "start"))
    said = "; ".join(
        f"{name}: {x:.3g} operations for a byte, at most {si(y)}operations a second" for name, (x, y) in points.items()
    )
    return _svg(
        width, height, f"Roofline of {profile.gpu} for {kind}, peak {si(peak)}operations a second. {said}.", parts
    )


# --- Occupancy --------------------------------------------------------------------------------------------------------


def occupancy(found: Occupancy, threads: int) -> str:
    """Draw the resident warps of a multiprocessor by the threads of a block; empty if they are not known."""
    if not found.by_block or not found.max_warps:
        return ""
    width, height, left, base = 560, 190, 50, 140
    step = (width - left - 10) / len(found.by_block)
    parts = []
    for percent in (0, 50, 100):
        y = base - percent / 100 * (base - 20)
        parts.append(f'<line class="grid" x1="{left}" x2="{width - 10}" y1="{y:g}" y2="{y:g}"/>')
        parts.append(_text(left - 6, y + 4, f"{percent} %", "end"))
    rounded = min(-(-threads // 32) * 32, found.by_block[-1][0])
    for number, (block, warps) in enumerate(found.by_block):
        x, tall = left + number * step, warps / found.max_warps * (base - 20)
        own = block == rounded
        mark = "own" if own else "other"
        parts.append(
            f'<rect class="{mark}" x="{x + 1:.1f}" y="{base - tall:.1f}" width="{step - 2:.1f}" height="{tall:.1f}">'
            f"<title>{block} threads: {warps} of {found.max_warps} warps</title></rect>"
        )
        if own:
            parts.append(f'<path class="arrow" d="M{x + step / 2:.1f} {base + 4}l5 8h-10z"/>')
        if block % 256 == 0 or number == 0:
            parts.append(_text(x + step / 2, base + 28, str(block), "middle"))
    parts.append(_text((left + width) / 2, base + 46, "threads of a block (the mark: this launch)", "middle"))
    best = max(found.by_block, key=lambda row: row[1])
    label = (
        f"Occupancy by block size: this launch has {found.warps} of {found.max_warps} warps; the most are {best[1]}, "
        f"first with {best[0]} threads."
    )
    return _svg(width, height, label, parts)


# --- Accesses ---------------------------------------------------------------------------------------------------------

_CELL = 9


def access(found: Access) -> list[str]:
    """Draw the recorded requests of an access: a row for each lane, a column for each sector or bank."""
    # Requests that differ by whole sectors, or by whole rows of banks, have one picture.
    drawers = {"shared": (4 * BANKS, _banks), "global": (SECTOR, _sectors)}
    if found.space not in drawers:
        return []
    unit, draw = drawers[found.space]
    drawn: dict[tuple[int | None, ...], str] = {}
    for request in found.first_requests:
        first = min(offset for offset in request.offsets if offset is not None)
        base = first - first % unit
        pattern = (request.size, *(None if offset is None else offset - base for offset in request.offsets))
        drawn.setdefault(pattern, draw(request))
    return list(drawn.values())


def _grid(columns: int, label: str, cells: dict[tuple[int, int], str], notes: Iterable[str]) -> str:
    """Draw 32 lanes by columns; a cell has a row, a column and what it says."""
    left, top = 34, 16
    parts = [_text(0, 11, "lane")]
    parts.extend(_text(left - 6, top + lane * _CELL + 8, str(lane), "end") for lane in range(0, 32, 8))
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{columns * _CELL}" height="{32 * _CELL}"/>')
    for (lane, column), said in cells.items():
        parts.append(
            f'<rect class="own" x="{left + column * _CELL + 0.5:g}" y="{top + lane * _CELL + 0.5:g}" '
            f'width="{_CELL - 1}" height="{_CELL - 1}"><title>{escape(said)}</title></rect>'
        )
    parts.extend(notes)
    return _svg(max(left + columns * _CELL + 4, 190), top + 32 * _CELL + 18, label, parts)


def _sectors(request: Request) -> str:
    lanes = [(lane, offset) for lane, offset in enumerate(request.offsets) if offset is not None]
    touched = sorted(
        {sector for _, offset in lanes for sector in range(offset // SECTOR, (offset + request.size - 1) // SECTOR + 1)}
    )
    column = {sector: number for number, sector in enumerate(touched)}
    cells = {}
    for lane, offset in lanes:
        for sector in range(offset // SECTOR, (offset + request.size - 1) // SECTOR + 1):
            cells[lane, column[sector]] = f"lane {lane}: byte {offset:,}, sector {sector:,}"
    notes = [
        f'<line class="gap" x1="{34 + number * _CELL}" x2="{34 + number * _CELL}" y1="16" y2="{16 + 32 * _CELL}"/>'
        for number in range(1, len(touched))
        if touched[number] != touched[number - 1] + 1
    ]
    gaps = f", {len(notes)} gaps" if notes else ""
    notes.append(_text(34, 16 + 32 * _CELL + 13, f"{len(touched)} sectors of 32 bytes{gaps}"))
    label = f"{len(lanes)} lanes access {len(touched)} sectors of 32 bytes, from byte {touched[0] * SECTOR:,} on{gaps}"
    return _grid(len(touched), label, cells, notes)


def _banks(request: Request) -> str:
    lanes = [(lane, offset) for lane, offset in enumerate(request.offsets) if offset is not None]
    words: dict[int, set[int]] = {}
    cells = {}
    for lane, offset in lanes:
        for word in range(offset // 4, (offset + request.size - 1) // 4 + 1):
            words.setdefault(word % BANKS, set()).add(word)
            cells[lane, word % BANKS] = f"lane {lane}: byte {offset:,}, bank {word % BANKS}"
    most = max(map(len, words.values()))
    said = "no conflicts" if most == 1 else f"up to {most} words in a bank"
    label = f"{len(lanes)} lanes access {len(words)} of {BANKS} banks, {said}"
    return _grid(BANKS, label, cells, [_text(34, 16 + 32 * _CELL + 13, f"{BANKS} banks: {said}")])
