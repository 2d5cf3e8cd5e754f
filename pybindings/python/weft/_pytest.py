"""A plugin of pytest's: with ``pytest --weft-sanitize``, tests fail in whose kernels the sanitizer finds something."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Add the options."""
    group = parser.getgroup("weft")
    group.addoption("--weft-sanitize", action="store_true", help="run weft's kernels on the CPU, under the sanitizer")
    group.addoption(
        "--weft-sanitize-tools",
        metavar="TOOLS",
        help="the same, with only some of memcheck,racecheck,initcheck,synccheck",
    )


def pytest_configure(config: Any) -> None:
    """Set what weft reads at the first use of a device, which is a test's."""
    tools = config.getoption("--weft-sanitize-tools") or ("all" if config.getoption("--weft-sanitize") else None)
    if tools is not None:
        os.environ["WEFT_SANITIZE"] = tools
        os.environ["WEFT_DEVICE"] = "cpu"
        os.environ.setdefault("WEFT_SANITIZE_ACTION", "raise")
