"""Of which date the figures of a page are: a note that says when its lines with times and rates were written.

A page that is made by a command, or of which a line is not committed yet, says it itself or says nothing.
"""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

FIGURE = re.compile(r"\d ?(?:ns|us|µs|ms|s|MB/s|GB/s|TB/s|%|percent|times)\b|\d ?%")
MADE = re.compile(r"<!-- (?:Generated|Made) ")
UNCOMMITTED = "0" * 40


def note(page: Path, root: Path) -> str | None:
    """The note for a page of docs/, or None if it has no figures."""
    text = page.read_text()
    if MADE.match(text) or not FIGURE.search(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        return None
    command = ["git", "blame", "--line-porcelain", "--", str(page)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    written: list[tuple[int, str]] = []
    commit, moment, fenced = "", 0, False
    for line in done.stdout.splitlines():
        if re.match(r"[0-9a-f]{40} ", line):
            commit = line[:40]
        elif line.startswith("author-time "):
            moment = int(line.split()[1])
        elif line.startswith("\t"):
            fenced ^= line.startswith("\t```")
            if not fenced and FIGURE.search(line) and commit != UNCOMMITTED:
                written.append((moment, commit[:7]))
    if not written:
        return None
    (first, of_first), (last, of_last) = min(written), max(written)
    dates = [f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d} (`{of}`)" for at, of in ((first, of_first), (last, of_last))]
    when = f"on {dates[0]}" if dates[0] == dates[1] else f"between {dates[0]} and {dates[1]}"
    return f"*Where nothing else is said, the figures on this page were written down {when}.*"


def add_notes(source: Path, root: Path) -> None:
    """Put the notes below the pages that were gathered in a folder from docs/."""
    for page in sorted((root / "docs").rglob("*.md")):
        gathered = source / page.relative_to(root / "docs")
        if gathered.exists() and (said := note(page, root)):
            gathered.write_text(f"{gathered.read_text().rstrip()}\n\n---\n\n{said}\n")
