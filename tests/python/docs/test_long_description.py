"""The wheel's long description, which package indexes show, is README.md without links that are broken there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs" / "_site"))
import contents
import long_description

ROOT = Path(__file__).resolve().parents[3]


def test_it_is_made_of_the_readme() -> None:
    made = long_description.of((ROOT / "README.md").read_text(), contents.repository())
    assert long_description.PAGE.read_text() == made, "./weft-dev bless makes it anew"


@pytest.mark.parametrize("url", [None, "https://git.example.org/weft"])
def test_links_lead_somewhere(url: str | None) -> None:
    made = long_description.of((ROOT / "README.md").read_text(), url)
    targets = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", made, flags=re.DOTALL))
    assert all(target.startswith("https://") for target in targets)
    assert bool(targets) == bool(url)
    assert ("![" in made) == bool(url)
    assert ("docs/language.md" in made) == bool(url)


def test_an_address_in_the_text_stays() -> None:
    text = "[NumPy](https://numpy.org), [a page](docs/a.md) ([b](docs/b.md)), [`docs/a.md`](docs/a.md) and `[no](link)`"
    assert long_description.of(text, None).endswith("[NumPy](https://numpy.org), a page, `docs/a.md` and `[no](link)`")
    assert "[a page](https://x.org/blob/main/docs/a.md)" in long_description.of(text, "https://x.org")
