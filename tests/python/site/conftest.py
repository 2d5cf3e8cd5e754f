"""Fixtures: the built site, served on this machine, and a browser. `./weft-dev docs` builds the site; apt installs the
browser.

`./weft-dev test` runs these tests with the Python of target/docs/venv, which has their dependencies; without these, the
tests are skipped.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "target" / "docs" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the site."""
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: ./weft-dev docs")
    return SITE


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(site: Path):
    """The URL of the site."""
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """A headless browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as driver:
        # Chromium's sandbox does not work for root, which CI often uses.
        with driver.chromium.launch(executable_path=path, args=["--no-sandbox"]) as launched:
            yield launched


@pytest.fixture
def page(browser, address):
    """A browser page. Failing scripts and missing resources are errors."""
    opened = browser.new_page(base_url=address, viewport={"width": 1400, "height": 900})
    opened.set_default_timeout(20_000)
    faults = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on(
        "response", lambda answer: faults.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None
    )
    yield opened
    opened.close()
    assert not [fault for fault in faults if "favicon" not in fault]
