"""The pages of profiles in a real browser: keyboard, hover, both color schemes, narrow windows, and no network."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import numpy as np
from weft import cuda


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    i, j = cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx
    out[i, j] = tile[tx, ty] * np.float32(2)


a = np.ones((128, 128), np.float32)
transpose[(4, 4), (32, 32)](a, np.empty_like(a))
"""

LINE = "out[i, j] = tile[tx, ty]"


def weft_profile(*args: object) -> None:
    env = os.environ | {"WEFT_DEVICE": "cpu"}
    subprocess.run([sys.executable, "-m", "weft.profile", *map(str, args)], env=env, check=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a program, and that of its comparison with a program without bank conflicts."""
    folder = tmp_path_factory.mktemp("profile")
    for name, source in (("before", PROGRAM), ("after", PROGRAM.replace("array((32, 32)", "array((32, 33)"))):
        (folder / f"{name}.py").write_text(source)
        weft_profile("--format", "json", "-o", folder / f"{name}.json", folder / f"{name}.py")
    pages = {"profile": folder / "profile.html", "comparison": folder / "comparison.html"}
    weft_profile("--format", "html", "-o", pages["profile"], folder / "before.py")
    both = folder / "before.json", folder / "after.json"
    weft_profile("--format", "html", "-o", pages["comparison"], "--compare", *both)
    return pages


@pytest.fixture
def opened(browser, files):
    """Opens a page as a file. Messages of the console, and requests of anything else, are errors."""
    pages, faults = [], []

    def open_page(name: str, scheme: str = "light", width: int = 1400):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(20_000)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        address = files[name].as_uri()
        page.on("request", lambda request: faults.append(request.url) if request.url != address else None)
        page.goto(address)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


def row(page):
    return page.locator("tr", has=page.locator("summary", has_text=LINE))


def test_hover_and_focus_show_the_parts_of_a_line(opened) -> None:
    page = opened("profile")
    tip = row(page).locator(".tip")
    assert not tip.is_visible()
    row(page).hover()
    assert tip.is_visible()
    assert "97 % of all wavefronts" in tip.inner_text()
    page.mouse.move(0, 0)
    assert not tip.is_visible()
    row(page).locator("summary").focus()
    assert tip.is_visible()


def test_the_keyboard_reaches_and_opens_each_line(opened) -> None:
    page = opened("profile")
    details = row(page).locator("details")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip().startswith(LINE):
            break
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    assert details.get_attribute("open") is None
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None
    assert "ld.shared" in details.inner_text()


def test_the_pictures_show_the_recorded_accesses(opened) -> None:
    page = opened("profile")
    row(page).locator("summary").click()
    labels = [each.get_attribute("aria-label") for each in row(page).locator("svg").all()]
    assert "32 lanes access 1 of 32 banks, up to 32 words in a bank" in labels
    assert "32 lanes access 4 sectors of 32 bytes, from byte 0 on" in labels
    # Each lane of the load is in the same bank, one below the other.
    picture = row(page).locator('svg[aria-label*="1 of 32 banks"]').first
    assert picture.locator("rect.own").count() == 32
    assert len({cell.get_attribute("x") for cell in picture.locator("rect.own").all()}) == 1
    roofline = page.locator('svg[aria-label^="Roofline of h100 for float32"]')
    assert roofline.locator(".point").count() == 4
    chart = page.locator('svg[aria-label^="Occupancy by block size: this launch has 64 of 64 warps"]')
    assert chart.locator("rect.own").count() == 1


def test_a_finding_leads_to_its_line(opened) -> None:
    page = opened("profile")
    page.locator(".finding a").first.click()
    assert page.evaluate("document.querySelector(':target').textContent").count(LINE) == 1


@pytest.mark.parametrize("name", ["profile", "comparison"])
def test_both_color_schemes_are_readable(opened, name: str) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page = opened(name, scheme)
        seen[scheme] = page.evaluate(
            """() => ['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])
                .map(text => text.match(/[0-9]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765)"""
        )
    assert seen["light"][0] > 0.9 > 0.2 > seen["light"][1]
    assert seen["dark"][0] < 0.2 < 0.8 < seen["dark"][1]


@pytest.mark.parametrize("name", ["profile", "comparison"])
def test_a_page_fits_a_narrow_window(opened, name: str) -> None:
    page = opened(name, width=400)
    for summary in page.locator("summary").all():
        summary.evaluate("element => element.parentElement.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_comparison_shows_what_moved(opened) -> None:
    page = opened("comparison")
    text = page.inner_text("main")
    assert "Findings that are gone" in text
    assert "bank conflicts" in text
    cells = page.locator("tr", has_text="shared wavefronts").first.locator("td").all_inner_texts()
    assert cells[1:4] == ["16,896", "1,024", "0.06 times"]
