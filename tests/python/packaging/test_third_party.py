"""docs/third-party.md, which the wheel carries, names every crate linked into it; the licenses are permissive."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TREE = ["cargo", "tree", "--locked", "--package", "weft-python", "--edges", "normal,no-proc-macro", "--prefix", "none"]
PERMISSIVE = {
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
}


def linked_crates() -> dict[str, str]:
    """Name and license of each crate that is linked into the extension, except weft's own."""
    tree = subprocess.run([*TREE, "--format", "{p}|{l}"], cwd=ROOT, capture_output=True, text=True, check=True)
    rows = (line.removesuffix(" (*)").split("|") for line in tree.stdout.splitlines())
    return {package.split()[0]: license for package, license in rows if not package.startswith("weft-")}


def test_the_page_is_complete() -> None:
    page = (ROOT / "docs" / "third-party.md").read_text()
    assert (ROOT / "pybindings" / "third-party.md").read_text() == page, (
        "it is a link, so that the wheel carries the page"
    )
    listed = {line for line in page.splitlines() if line.startswith("| `")}
    assert listed == {f"| `{name}` | {license} |" for name, license in linked_crates().items()}


def test_all_licenses_are_permissive() -> None:
    for name, license in linked_crates().items():
        parts = license.replace("/", " OR ").replace("(", "").replace(")", "").split(" AND ")
        assert all(PERMISSIVE.intersection(part.split(" OR ")) for part in parts), (name, license)
