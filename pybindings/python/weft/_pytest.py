"""A plugin of pytest's: ``--weft-sanitize`` fails tests with findings, ``--weft-profile`` profiles their kernels."""

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
    group.addoption(
        "--weft-profile",
        action="store_true",
        help="run weft's kernels on the CPU, and show at the end what makes them slow on a GPU",
    )
    group.addoption(
        "--weft-profile-report", metavar="FILE", help="the same, and write the report to a .txt, .json or .html file"
    )
    group.addoption("--weft-profile-gpu", metavar="NAME", default="h100", help="the GPU to profile for (h100)")


def pytest_configure(config: Any) -> None:
    """Set what weft reads at the first use of a device, which is a test's."""
    tools = config.getoption("--weft-sanitize-tools") or ("all" if config.getoption("--weft-sanitize") else None)
    if tools is not None:
        os.environ["WEFT_SANITIZE"] = tools
        os.environ["WEFT_DEVICE"] = "cpu"
        os.environ.setdefault("WEFT_SANITIZE_ACTION", "raise")
    if config.getoption("--weft-profile") or config.getoption("--weft-profile-report"):
        os.environ["WEFT_DEVICE"] = "cpu"
        from weft._profile_pytest import Plugin

        config.pluginmanager.register(Plugin(config), "weft-profile")
