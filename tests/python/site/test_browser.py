"""The built site in a real browser: its navigation, its search, the gallery's pictures, and hidden solutions."""

from __future__ import annotations

import pytest

PARTS = ["Learn", "Coming from elsewhere", "How to", "Reference", "Measured", "How it is built"]


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
    for name, heading in [("The language of kernels", "The language"), ("Use several GPUs", "Use several GPUs")]:
        page.locator(".sidebar-tree").get_by_role("link", name=name).first.click()
        page.wait_for_load_state()
        assert page.locator("h1").first.inner_text().startswith(heading)


def test_next_goes_through_the_notebooks(page):
    page.goto("/notebooks/1-first-kernel.html")
    for number in (2, 3, 4, 5):
        page.locator(".related-pages a.next-page").click()
        page.wait_for_url(f"**/notebooks/{number}-*.html")
        assert page.locator("h1").first.inner_text().startswith(f"{number}.")


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("syncthreads_count", "kernel-names/cuda.html"),
        ("copy_to_host", "api/arrays.html"),
        ("grid-stride", "notebooks/1-first-kernel.html"),
        ("event_elapsed_time", "api/streams.html"),
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
    page.locator("article").get_by_role("link", name="Mandelbrot").first.click()
    page.wait_for_url("**/gallery/03_mandelbrot.html")
    width = page.locator("article img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width == 900
    text = page.locator("article").inner_text()
    assert "pixels, area 1.5" in text
    assert ".visible .entry" in text
    assert ".target sm_90" in text


def test_solutions_are_hidden_until_they_are_opened(page):
    page.goto("/notebooks/1-first-kernel.html")
    solution = page.locator(".cell.tag_solution").first
    code = solution.locator("pre").first
    assert not code.is_visible()
    solution.locator("summary").first.click()
    assert code.is_visible()
    assert "out[i] = a * x[i] + b" in code.inner_text()


def test_an_entry_of_the_api_has_parameters_and_an_example(page):
    page.goto("/api/arrays.html#weft.cuda.to_device")
    entry = page.locator("dl.py.function", has=page.locator("[id='weft.cuda.to_device']")).first
    text = entry.inner_text()
    for word in ("Parameters", "Returns", "Raises", "Examples", ">>>"):
        assert word.lower() in text.lower(), word
