"""Writes pybindings/README.md, what a package index shows of the wheel: README.md without links that are dead there.

A package index shows the text without the repository. If the package names its repository (`Repository` of the
project's URLs), links to the project's files become addresses. Otherwise their labels remain, references in parentheses
and pictures are left out, and so is the section for people who have the repository. `./weft-dev bless` calls it, and a
test compares the file with README.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from contents import repository, with_links

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "pybindings" / "README.md"
WHERE = "The pages are in the folder `docs` of weft's repository:"
EXAMPLE = "examples/01_saxpy.py"
NOTE = "<!-- Made of ../README.md by `./weft-dev bless`; do not edit. -->\n\n"


def of(text: str, url: str | None) -> str:
    """The text for an index; `url` is where the repository is, if that is known."""

    def link(label: str, target: str) -> str:
        if "://" in target or target.startswith("#"):
            return f"[{label}]({target})"
        if url:
            return f"[{label}]({url}/blob/main/{target})"
        return label

    def picture(match: re.Match[str]) -> str:
        return f"![{match[1]}]({url}/raw/main/{match[2]})\n\n" if url else ""

    if not url:
        text = re.sub(r"\n## Work on weft\n.*?\n(?=weft is licensed)", "\n", text, flags=re.DOTALL)
        text = re.sub(r"\s+\(\[[^\]]+\]\((?![a-z]+:)[^()\s]+\)\)", "", text)
        text = text.replace("## Documentation\n\n", f"## Documentation\n\n{WHERE}\n\n").replace(EXAMPLE, "saxpy.py")
    text = re.sub(r"!\[([^\]]+)\]\(([^()\s]+)\)\n\n", picture, text)
    return NOTE + with_links(text, link)


if __name__ == "__main__":
    PAGE.write_text(of((ROOT / "README.md").read_text(), repository()))
