"""Links between pages of the built site lead to a file, and to an anchor in it; the inventory has the names that
programs use."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class Page(HTMLParser):
    """The anchors of a page and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in {"href", "src"} and value and tag != "link":
                self.links.append(value)


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_links(site: Path) -> None:
    faults, n_links = [], 0
    for path in sorted(site.rglob("*.html")):
        for link in read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            n_links += 1
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            place = unquote(parts.fragment)
            if not target.exists():
                faults.append(f"{path.relative_to(site)}: {link}")
            elif place and target.suffix == ".html" and place not in read(target).ids:
                faults.append(f"{path.relative_to(site)}: {link}: no such anchor")
    assert n_links > 1000
    assert not faults, "\n".join(faults)


def test_the_inventory_has_what_programs_name(site: Path) -> None:
    inventory = pytest.importorskip("sphinx.util.inventory", reason="sphinx is not installed")
    from weft import cuda

    with (site / "objects.inv").open("rb") as file:
        found = inventory.InventoryFile.load(file, "", lambda base, path: path)
    names = {name for kind in found if kind.startswith("py:") for name in found[kind]}
    wanted = {f"weft.cuda.{name}" for name in cuda.__all__ if callable(getattr(cuda, name))}
    numbers = {f"weft.cuda.{name}" for name in cuda.__all__ if isinstance(getattr(cuda, name), cuda.Type)}
    elsewhere = {"weft.cuda.CUDADispatcher", "weft.cuda.CudaAPIError", "weft.cuda.CudaDriverError"}
    elsewhere |= {"weft.cuda.CudaSupportError", "weft.cuda.KernelRuntimeError", "weft.cuda.LaunchError"}
    assert wanted - numbers - elsewhere - names == set()
    assert {
        "weft.cuda.atomic.add",
        "weft.cuda.coop.block.sum",
        "weft.cuda.libdevice.sin",
        "weft.cuda.cg.reduce",
    } <= names
    assert not [name for name in names if name.count("weft.cuda") > 1]
    assert {"weft.errors.CompileError", "weft.cuda.DeviceNDArray.copy_to_host", "weft.cuda.Stream.synchronize"} <= names
