"""Writes pybindings/README.md, what a package index shows of the wheel: README.md without links that are dead there.

An index shows the text alone, without the repository around it. Links to the project's files become addresses, if the
package says where its repository is (`Repository` of the project's URLs), and else the text that they stand on;
pictures without an address are left out. `./weft-dev bless` calls it, and a test holds the file to README.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from contents import repository, with_links

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "pybindings" / "README.md"
NOTE = "<!-- Made of ../README.md by `./weft-dev bless`; do not edit. -->\n\n"


def of(text: str, url: str | None) -> str:
    """The text for an index; `url` is where the repository is, if that is known."""

    def link(label: str, target: str) -> str:
        if "://" in target or target.startswith("#"):
            return f"[{label}]({target})"
        if url:
            return f"[{label}]({url}/blob/main/{target})"
        return label if label.strip("`") == target else f"{label} (`{target}`)"

    def picture(match: re.Match[str]) -> str:
        return f"![{match[1]}]({url}/raw/main/{match[2]})\n\n" if url else ""

    text = re.sub(r"!\[([^\]]+)\]\(([^()\s]+)\)\n\n", picture, text)
    return NOTE + with_links(text, link)


if __name__ == "__main__":
    PAGE.write_text(of((ROOT / "README.md").read_text(), repository()))
