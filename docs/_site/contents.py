"""The table of contents of the site, made of docs/README.md, and links of pages that lead out of docs/."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
TOKEN = re.compile(rf"```.*?```|(?P<link>{LINK.pattern})|`[^`\n]*`", re.DOTALL)


def with_links(text: str, change: Callable[[str, str], str]) -> str:
    """The text with its links replaced by `change(label, target)`, except those in code."""

    def replaced(match: re.Match[str]) -> str:
        return change(*LINK.fullmatch(match["link"]).groups()) if match["link"] else match[0]

    return TOKEN.sub(replaced, text)


def make_home(first: Path, contents: Path, home: Path, made: dict[str, list[str]]) -> None:
    """Write the first page: the text of `first`, and the parts of docs/README.md, each with a hidden table of contents.

    `made` has the pages that are made when the site is built, by the part's heading.
    """
    lines = contents.read_text().splitlines()
    lines = lines[next(at for at, line in enumerate(lines) if line.startswith("## ")) :]
    parts: dict[str, list[str]] = {}
    heading = ""
    for line in lines:
        if line.startswith("## "):
            heading = line.removeprefix("## ")
            parts[heading] = []
        elif line.startswith("- "):
            for _, target in LINK.findall(line)[:1]:
                if "://" not in target:
                    parts[heading].append(page_of(target))
    for part, pages in made.items():
        parts[part] += pages
    text = first.read_text().replace("](../", "](") + "\n" + "\n".join(lines) + "\n"
    for part, pages in parts.items():
        if pages:
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {part}\n\n" + "\n".join(pages) + "\n```\n"
    home.write_text(text)


def add_toctree(page: Path, folder: str) -> None:
    """Put a hidden table of contents of a folder beside a page after its text, in the order of the page's links."""
    text = page.read_text()
    linked = [target for _, target in LINK.findall(text) if target.startswith(f"{folder}/")]
    pages = dict.fromkeys(target.removesuffix(".md") for target in linked)
    page.write_text(f"{text}\n```{{toctree}}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n")


def add_narrow_picture(page: Path, stem: str) -> None:
    """Show a page's picture `stem`.svg on wide screens, and `stem`-narrow.svg on narrow ones."""
    text, count = re.subn(
        rf"^!\[([^\]]+)\]\({stem}\.svg\)$",
        rf"```{{image}} {stem}.svg\n:alt: \1\n:class: wide-only\n```\n"
        rf"```{{image}} {stem}-narrow.svg\n:alt: \1\n:class: narrow-only\n```",
        page.read_text(),
        flags=re.MULTILINE,
    )
    if count != 1:
        raise ValueError(f"{page.name} does not show {stem}.svg once")
    page.write_text(text)


def page_of(target: str) -> str:
    """Sphinx's name of a page that docs/README.md links to."""
    if target == "../CHANGELOG.md":
        return "changelog"
    if target.endswith("/"):
        return f"{target}index"
    return re.sub(r"\.(md|ipynb)$", "", target)


def make_index(folder: Path) -> None:
    """Make a folder's first page of its README.md: the text, with a hidden table of contents of the folder's pages.

    A page that the text does not link to is an error, because readers would not find it.
    """
    readme = folder / "README.md"
    text = readme.read_text()
    readme.unlink()
    linked = [page_of(target) for _, target in LINK.findall(text) if "/" not in target]
    if missing := sorted({page.stem for page in folder.glob("*.md")} - set(linked)):
        raise ValueError(f"{folder.name}/README.md does not link to {', '.join(missing)}")
    toctree = "```{toctree}\n:hidden:\n\n" + "\n".join(linked) + "\n```\n"
    (folder / "index.md").write_text(f"{text}\n{toctree}")


def repository() -> str | None:
    """Where the project's files can be read, if the package says so."""
    text = (Path(__file__).resolve().parents[2] / "pybindings" / "pyproject.toml").read_text()
    found: str | None = tomllib.loads(text)["project"].get("urls", {}).get("Repository")
    return found


EXPLAIN = Path("compiler/src/diagnostic/explain")
"""The pages of the codes of diagnostics, which are in reference/diagnostics/ of the site."""


def outside(text: str, page: Path, docs: Path, url: str | None) -> str:
    """Links that lead out of the site: to the repository, where its address is known, else their text alone.

    `page` is the path of the text, `docs` the folder that the site is built from.
    """

    def changed(label: str, target: str) -> str:
        same = f"[{label}]({target})"
        path, _, _ = target.partition("#")
        if "://" in target or not path:
            return same
        there = (page.parent / path).resolve()
        up = "../" * (len(page.relative_to(docs).parts) - 1)
        if there == docs.parent / "CHANGELOG.md" or there == docs / "README.md":
            name = "changelog.md" if there.name == "CHANGELOG.md" else "index.md"
            return f"[{label}]({up}{name})"
        if there in {docs / "design", docs / "design" / "README.md"}:
            return f"[{label}]({path.removesuffix('README.md')}index.md)"
        if there.is_relative_to(docs) and there.is_file():
            return same
        inside = there.relative_to(docs.parent)
        if inside.parent == EXPLAIN:
            here = page.relative_to(docs).parent
            return f"[{label}]({os.path.relpath(f'reference/diagnostics/{inside.name}', here)})"
        if url:
            return f"[{label}]({url}/blob/main/{inside})"
        same_name = str(inside).endswith(label.strip("`/"))
        return f"`{inside}`" if same_name else f"{label} (`{inside}`)"

    return with_links(text, changed)


def fix_links(source: Path, root: Path) -> None:
    """Do so for all pages that were gathered in a folder from docs/."""
    url = repository()
    for page in source.rglob("*.md"):
        inside = page.relative_to(source)
        # Links are relative to the page's folder in the repository.
        stands = {"changelog.md": root / "CHANGELOG.md", "index.md": root / "docs" / "README.md"}
        text = page.read_text()
        if inside.name == "changelog.md":
            text = re.sub(r"\]\(docs/", "](", text)
            page.write_text(outside(text, root / "docs" / inside, root / "docs", url))
        else:
            page.write_text(outside(text, stands.get(str(inside), root / "docs" / inside), root / "docs", url))
