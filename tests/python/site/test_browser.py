"""The built site in a real browser: each page at two widths, its navigation, its search, the gallery, and solutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ["Learn", "Coming from elsewhere", "How to", "Reference", "Measured", "How it is built"]


WIDTHS = (1280, 390)  # a laptop, and a phone
# Parts of a page that exceed its width. Code may scroll; the page and its tables may not.
TOO_WIDE = """() => {
    const faults = [];
    if (document.documentElement.scrollWidth > innerWidth + 1)
        faults.push("the page");
    for (const table of document.querySelectorAll("article .table-wrapper, article table")) {
        const head = table.querySelector("tr").innerText.replace(/\\s+/g, " ").slice(0, 60);
        if (table.scrollWidth > table.clientWidth + 1 || table.getBoundingClientRect().right > innerWidth + 1)
            faults.push("the table " + head);
        for (const cell of table.querySelectorAll("td"))
            if (cell.innerText.trim().length > 3 && cell.clientWidth < 28)
                faults.push("a cell of the table " + head);
    }
    for (const image of document.querySelectorAll("article img"))
        if (image.getBoundingClientRect().right > innerWidth + 1)
            faults.push("the picture " + image.alt);
    return [...new Set(faults)];
}"""
# The brightness of a page's text and background, from 0 to 1.
BRIGHTNESS = """() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor].map(
    color => color.match(/[0-9.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765)"""


def test_every_page_fits_a_laptop_and_a_phone_and_is_readable_in_light_and_dark(page, site: Path):
    faults = []
    paths = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    for path in paths:
        page.goto(f"/{path}")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            faults += [f"{path}, {width} pixels: {fault}" for fault in page.evaluate(TOO_WIDE)]
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            text, background = page.evaluate(BRIGHTNESS)
            if not ((background > 0.8 and text < 0.3) if scheme == "light" else (background < 0.2 and text > 0.7)):
                faults.append(f"{path}: text {text:.2f} on {background:.2f} in {scheme}")
    assert len(paths) > 200
    assert not faults, "\n".join(faults)


def test_the_first_page_has_a_program_and_what_it_computes(page):
    page.goto("/index.html")
    article = page.locator("article")
    assert "@cuda.jit" in article.locator("pre").first.inner_text()
    assert "pip install" in article.inner_text()
    assert "weft-dev" not in article.inner_text()
    width = article.locator("img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width == 480
    links = article.locator(".starts a").all()
    assert [link.inner_text() for link in links] == ["Get started", "Coming from Numba", "Coming from CUDA C++"]


def test_a_diagnostic_has_a_page(page):
    page.goto("/reference/diagnostics.html")
    page.locator("article").get_by_role("link", name="E0203").first.click()
    page.wait_for_url("**/reference/diagnostics/E0203.html")
    text = page.locator("article").inner_text()
    assert page.locator("h1").first.inner_text().startswith("E0203")
    assert "Wrong" in text
    assert "error[E0203]" in text


def test_the_picture_of_the_benchmarks_has_a_form_for_phones(page):
    page.goto("/benchmarks.html")
    for width, shown in zip(WIDTHS, (1000, 400), strict=True):
        page.set_viewport_size({"width": width, "height": 900})
        (picture,) = [image for image in page.locator("article img").all() if image.is_visible()]
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == shown


def test_the_first_page_leads_to_getting_started(page):
    page.goto("/index.html")
    assert page.locator("h1").first.inner_text().startswith("weft")
    page.locator("article").get_by_role("link", name="Getting started").first.click()
    page.wait_for_url("**/getting-started.html")
    assert page.locator("h1").first.inner_text().startswith("Getting started")
    assert "cuda.grid(1)" in page.locator("article").inner_text()


def test_the_navigation_has_all_parts(page):
    page.goto("/index.html")
    captions = page.locator(".sidebar-tree .caption").all_inner_texts()
    assert [caption.strip().lower() for caption in captions] == [part.lower() for part in PARTS]
    for name, heading in [("The kernel language", "The kernel language"), ("Use several GPUs", "Use several GPUs")]:
        page.locator(".sidebar-tree").get_by_role("link", name=name).first.click()
        page.wait_for_load_state()
        assert page.locator("h1").first.inner_text().startswith(heading)


def test_next_goes_through_the_notebooks(page):
    page.goto("/notebooks/1-first-kernel.html")
    for number in (2, 3, 4, 5, 6):
        page.locator(".related-pages a.next-page").click()
        page.wait_for_url(f"**/notebooks/{number}-*.html")
        assert page.locator("h1").first.inner_text().startswith(f"{number}.")


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("syncthreads_count", "reference/names/barriers.html"),
        ("copy_to_host", "api/arrays/DeviceNDArray.html"),
        ("grid-stride", "notebooks/1-first-kernel.html"),
        ("event_elapsed_time", "api/streams/event_elapsed_time.html"),
        ("E0203", "reference/diagnostics/E0203.html"),
    ],
)
def test_the_search_finds(page, words, target):
    page.goto("/index.html")
    page.locator(".sidebar-search").fill(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html*")
    link = page.locator(f"#search-results a[href*='{target}']").first
    link.wait_for()
    link.click()
    page.wait_for_url(f"**/{target}*")
    assert words in page.locator("article").inner_text()


def test_the_gallery_shows_pictures_outputs_and_ptx(page):
    page.goto("/gallery/index.html")
    cards = page.locator(".gallery .card")
    assert cards.count() >= 14
    tops = [cards.nth(number).bounding_box()["y"] for number in range(3)]
    assert tops[0] == tops[1]  # a grid
    cards.get_by_role("link", name="Mandelbrot").last.click()
    page.wait_for_url("**/gallery/03_mandelbrot.html")
    width = page.locator("article img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width == 900
    text = page.locator("article").inner_text()
    assert "pixels, area 1.5" in text
    assert ".visible .entry" in text
    assert ".target sm_90" in text


def test_solutions_are_hidden_until_they_are_opened(page):
    page.goto("/notebooks/1-first-kernel.html")
    solution = page.locator("details", has_text="Solution").first
    code = solution.locator("pre").first
    assert not code.is_visible()
    solution.locator("summary").first.click()
    assert code.is_visible()
    assert "out[i] = a * x[i] + b" in code.inner_text()


def test_math_is_rendered_and_pictures_are_stored(page):
    page.goto("/notebooks/1-first-kernel.html")
    assert page.locator("article math").count() == 2
    assert "$" not in page.locator("article p", has_text="draws the Mandelbrot set").inner_text()
    width = page.locator(".cell_output img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width > 300


def test_an_entry_of_the_api_has_parameters_and_an_example(page):
    page.goto("/api/arrays/to_device.html")
    entry = page.locator("dl.py.function", has=page.locator("[id='weft.cuda.to_device']")).first
    text = entry.inner_text()
    for word in ("Parameters", "Returns", "Raises", "Examples", ">>>"):
        assert word.lower() in text.lower(), word
