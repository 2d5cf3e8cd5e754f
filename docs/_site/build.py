"""Builds the site of docs/: `./weft-dev docs` calls it with the Python of the site's environment, which has weft.

The pages of docs/ are gathered in one folder, with pages that are made at this time: the first page, the host API from
docstrings, the gallery of the examples, and a page for each diagnostic. docs/README.md is the table of contents: its
headings are the parts of the site, its links their pages. Sphinx then makes HTML, a search and `objects.inv`, and fails
where a page warns.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import api
import contents
import figures
import gallery
import home
import kernel_names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = {  # pages that are generated, by the part of the site that they belong to
    "Reference": ["api/index"],
    "Learn": ["gallery/index"],
}


def gather(source: Path) -> None:
    """Put all pages into a folder, which must be empty."""
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_site", ".ipynb_checkpoints", "__pycache__"))
    shutil.copy(ROOT / "CHANGELOG.md", source / "changelog.md")
    contents.make_index(source / "design")
    table = source / "README.md"
    contents.make_home(DOCS / "_site" / "home.md", table, source / "index.md", MADE)
    table.unlink()
    figures.add_notes(source, ROOT)
    contents.fix_links(source, ROOT)
    shutil.copytree(ROOT / contents.EXPLAIN, source / "reference" / "diagnostics")
    contents.add_toctree(source / "reference" / "diagnostics.md", "diagnostics")
    contents.add_toctree(source / "reference" / "intrinsics.md", "names")
    contents.add_narrow_picture(source / "benchmarks.md", "benchmarks")
    kernel_names.add_entries(source / "reference" / "names")


def main() -> None:
    """Gather, make, build."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the folder that gets source/ and html/, made anew")
    parser.add_argument("--without-gallery", action="store_true", help="quicker: run no examples")
    options = parser.parse_args()
    # The output shown is that of a machine without a GPU, which is the same each time.
    os.environ |= {"WEFT_DEVICE": "cpu", "WEFT_PROGRESS": "0"}
    out = options.out.resolve()
    source, html = out / "source", out / "html"
    for folder in (source, html, out / "doctrees"):
        shutil.rmtree(folder, ignore_errors=True)
    gather(source)
    api.make(source / "api")
    home.add_picture(source / "index.md")
    gallery.make(source / "gallery", ROOT / "examples", run=not options.without_gallery)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--nitpicky", "-q", "-j", "auto"]
    command += ["-c", Path(__file__).parent, "-d", out / "doctrees", "-b", "html", source, html]
    status = subprocess.run([*map(str, command)], check=False).returncode
    if status:
        sys.exit(status)
    n_pages = sum(1 for _ in html.rglob("*.html"))
    print(f"{n_pages} pages: {html / 'index.html'}")


if __name__ == "__main__":
    main()
