"""Draws figures of benchmarks as one SVG, light or dark like the reader's browser. Does not need weft.

Three panels: the host's time of a launch, the bandwidth of copies, the time of kernels relative to CUDA C++. They are
in two columns, or in one for narrow screens. The picture has its own background, so that it is readable on any page,
and depends only on the figures. A panel without figures says so.
"""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import Any

import tables
from machine import sentence

WIDTH, NARROW = 1000, 400
MARGIN, GAP = 24, 40
COLUMN = (WIDTH - 2 * MARGIN - GAP) // 2
LABELS, VALUES = 124, 44
"""Pixels before the bars for names, and after the longest bar for its value."""
BAR, KERNEL = 17, 27
"""Pixels from one bar, and one kernel, to the next."""
NAMES, NUMBERS = 186, 138
"""Pixels before the axis of kernels for names, and after it for numbers."""

# The parts of a drawing: the colors on a light and on a dark background.
COLORS = {
    "page": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "soft": ("#59636e", "#9198a1"),
    "rule": ("#d1d9e0", "#3d444d"),
    "weft": ("#0969da", "#4493f8"),
    "C": ("#818b98", "#7d8590"),
    "numba-cuda": ("#bc4c00", "#f0883e"),
    "CuPy": ("#1a7f37", "#3fb950"),
    "PyTorch": ("#8250df", "#a371f7"),
}

OWN = "`kernel[1, 32](...)`"
# Titles, the number of arrays, and for each bar its name, the library that colors it and the row of launch.py.
LAUNCHES = (
    ("no argument", "0", (
        ("C, the driver's call", "C", tables.C_LAUNCH),
        ("weft", "weft", f"weft, {OWN}"),
        ("CuPy", "CuPy", "CuPy RawKernel"),
        ("numba-cuda", "numba-cuda", f"numba-cuda, {OWN}"),
    )),
    ("4 device arrays of its own", "4", (
        ("C, the driver's call", "C", tables.C_LAUNCH),
        ("weft", "weft", f"weft, {OWN}"),
        ("weft, prepared", "weft", "weft, prepared"),
        ("CuPy", "CuPy", "CuPy RawKernel"),
        ("numba-cuda", "numba-cuda", f"numba-cuda, {OWN}"),
    )),
    ("4 arrays of CuPy's", "4", (
        ("weft", "weft", "weft, CuPy's arrays"),
        ("numba-cuda", "numba-cuda", "numba-cuda, CuPy's arrays"),
    )),
    ("4 tensors of PyTorch's", "4", (
        ("weft", "weft", "weft, PyTorch's tensors"),
        ("numba-cuda", "numba-cuda", "numba-cuda, PyTorch's tensors"),
    )),
)  # fmt: skip
# Titles and the rows of memory.py.
COPIES = (
    ("plain memory to the device", "into an array there"),
    ("from the device to plain memory", "into an array of the host"),
    ("page-locked memory to the device", "page-locked, into an array there"),
)


class Picture:
    """The elements of an SVG, in drawing order."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.elements: list[str] = []

    def text(self, x: float, y: float, text: str, kind: str = "text", size: int = 12, anchor: str = "start") -> None:
        bold = ' font-weight="600"' if size > 12 else ""
        self.elements.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{bold}>'
            f"{escape(text, quote=False)}</text>"
        )

    def bar(self, x: float, y: float, width: float, kind: str) -> None:
        self.elements.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR - 5}" rx="1.5"/>'
        )

    def dot(self, x: float, y: float, kind: str) -> None:
        self.elements.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')

    def rule(self, x1: float, y1: float, x2: float, y2: float, kind: str = "rule", width: float = 1) -> None:
        self.elements.append(
            f'<line stroke-width="{width}" class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )

    def svg(self, height: float, title: str, description: str) -> str:
        """The whole file."""

        def rules(place: int) -> str:
            return "".join(f".{kind}{{fill:{pair[place]};stroke:none}}" for kind, pair in COLORS.items()) + "".join(
                f"line.{kind}{{stroke:{COLORS[kind][place]}}}" for kind in ("rule", "soft")
            )

        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:.0f}" width="{self.width}" '
            f'height="{height:.0f}" role="img" aria-labelledby="title description" '
            'font-family="system-ui, -apple-system, \'Segoe UI\', Helvetica, Arial, sans-serif">',
            f'<title id="title">{escape(title, quote=False)}</title>',
            f'<desc id="description">{escape(description, quote=False)}</desc>',
            f"<style>{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}</style>",
            f'<rect class="page" width="{self.width}" height="{height:.0f}" rx="8"/>',
            *self.elements,
            "</svg>\n",
        ])  # fmt: skip


Bars = list[tuple[str, list[tuple[str, str, float | None]]]]
"""Groups with their titles; of each bar the name, the color and the value, if it was measured."""


def bars(picture: Picture, left: float, top: float, column: int, title: str, note: str, groups: Bars) -> float:
    """Draws a panel of bars; returns the position of its end."""
    picture.text(left, top, title, size=15)
    picture.text(left, top + 18, note, "soft")
    y = top + 28.0
    known = [value for _, rows in groups for _, _, value in rows if value is not None]
    if not known:
        picture.text(left, y + 18, tables.MISSING, "soft")
        return y + 26
    room = column - LABELS - VALUES
    for group, rows in groups:
        y += 18
        picture.text(left + LABELS, y, group, "soft")
        y += 6
        for name, kind, value in rows:
            picture.text(left + LABELS - 8, y + 10, name, "text", anchor="end")
            if value is None:
                picture.text(left + LABELS, y + 10, tables.MISSING, "soft")
            else:
                width = max(1.0, room * value / max(known))
                picture.bar(left + LABELS, y, width, kind)
                picture.text(left + LABELS + width + 5, y + 10, f"{value:.1f}")
            y += BAR
    return y


def launch_groups(figures: dict[str, Any]) -> Bars:
    """Microseconds of a launch."""

    def value(row: str, count: str) -> float | None:
        times = figures.get(row)
        return times[count] / 1e3 if isinstance(times, dict) and count in times else None

    return [(title, [(name, kind, value(row, count)) for name, kind, row in rows]) for title, count, rows in LAUNCHES]


def copy_groups(figures: dict[str, Any]) -> Bars:
    """GB/s of the largest copy, for each library that was measured with one of them."""
    if not figures:
        return []
    size = figures["sizes"][-1]
    by_copy = figures["microseconds"]

    def value(what: str, library: str) -> float | None:
        times = by_copy.get(what, {}).get(library)
        return size / times[-1] / 1e3 if isinstance(times, list) else None

    groups = []
    for title, what in COPIES:
        rows = [(library, library, value(what, library)) for library in ("weft", "PyTorch", "CuPy")]
        # memory.py does not measure this copy for every library.
        groups.append((title, [row for row in rows if row[0] == "weft" or row[0] in by_copy.get(what, {})]))
    return groups


def kernels(picture: Picture, left: float, top: float, column: int, figures: dict[str, Any]) -> float:
    """Draws the ratios of kernels on a logarithmic axis; returns the position of its end. In a narrow column, a
    kernel's name is above its part of the axis."""
    picture.text(left, top, "Time of kernels over CUDA C++'s", size=15)
    picture.text(left, top + 18, "less is better; 1 is as fast as C++, compiled by NVRTC", "soft")
    rows = figures.get("rows", [])
    known = [value for row in rows for name in ("weft", "numba-cuda") if (value := tables.ratio(row, name))]
    y = top + 46.0
    if not known:
        picture.text(left, y, tables.MISSING, "soft")
        return y + 8
    above = column < COLUMN
    names, height = (8, 2 * KERNEL - 12) if above else (NAMES, KERNEL)
    begin, end = left + names, left + column - NUMBERS
    first, last = math.floor(math.log2(min(*known, 1))), math.ceil(math.log2(max(*known, 1)))

    def at(value: float) -> float:
        return begin + (end - begin) * (math.log2(value) - first) / max(last - first, 1)

    bottom = y + 8 + height * len(rows)
    for power in range(first, last + 1):
        place = at(2.0**power)
        picture.rule(place, y + 6, place, bottom, *(("soft", 1.5) if power == 0 else ("rule", 1)))
        picture.text(place, y, f"{2.0**power:g}", "soft", anchor="middle")
    columns = {"weft": left + column - 84, "numba-cuda": left + column}
    for name, place in columns.items():
        picture.text(place, y, name, name, anchor="end")
    y += 8
    for row in rows:
        middle = y + height - KERNEL / 2
        picture.text(left, y + 14 if above else middle + 4, row["kernel"])
        # weft's bars come last, so that they are visible if both are equally fast.
        for name in ("numba-cuda", "weft"):
            found = tables.ratio(row, name)
            picture.text(columns[name], middle + 4, "–" if found is None else f"{found:.2f}", anchor="end")
            if found is not None:
                picture.dot(at(found), middle, name)
        y += height
    return y


def caption(records: dict[str, Any]) -> list[str]:
    """The machine and date of the measurements: one line, or several if the panels differ."""
    panels = {"launch": "launches", "memory": "copies", "kernels": "kernels"}
    told: dict[str, list[str]] = {}
    for program, panel in panels.items():
        if record := records.get(program):
            told.setdefault(sentence(record["machine"], record["date"]), []).append(panel)
    if len(told) == 1 and sum(map(len, told.values())) == len(panels):
        return list(told)
    return [f"{', '.join(measured)}: {where}" for where, measured in told.items()]


def draw(records: dict[str, Any], width: int = WIDTH) -> str:
    """The SVG of the saved figures of launch.py, memory.py and kernels.py, by these names; any of them may be
    missing."""
    figures = {program: record["figures"] for program, record in records.items()}
    picture = Picture(width)
    column = COLUMN if width == WIDTH else width - 2 * MARGIN
    left, top = MARGIN, 38
    y = bars(
        picture, left, top, column, "Launch of a kernel", "the host's time, microseconds; less is better",
        launch_groups(figures.get("launch", {})),
    )  # fmt: skip
    copies = figures.get("memory", {})
    size = f" of {tables.size_text(copies['sizes'][-1])}" if copies else ""
    y = bars(picture, left, y + 40, column, f"Copies{size}", "GB/s; more is better", copy_groups(copies))
    if width == WIDTH:
        y = max(y, kernels(picture, MARGIN + COLUMN + GAP, top, column, figures.get("kernels", {}))) + 18
    else:
        y = kernels(picture, left, y + 40, column, figures.get("kernels", {})) + 18
    lines = caption(records)
    picture.rule(MARGIN, y, width - MARGIN, y)
    for text in lines:
        for line in textwrap.wrap(text, width // 6):
            y += 18
            picture.text(MARGIN, y, line, "soft", size=11)
    return picture.svg(y + 16, "weft's benchmarks", "; ".join(lines) or tables.MISSING)
