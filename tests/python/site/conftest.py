"""The built site, served on this machine, and a browser to open it in. `./weft-dev docs` makes the one, apt the other.

`./weft-dev test` runs these tests with the Python of target/docs/venv, which has what they need; others skip them.
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
    """Where the site is served."""
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as driver:
        # Chromium's sandbox refuses root, as who CI often is.
        with driver.chromium.launch(executable_path=path, args=["--no-sandbox"]) as launched:
            yield launched


@pytest.fixture
def page(browser, address):
    """A page of the browser, in which no script may fail and nothing may be missing."""
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
