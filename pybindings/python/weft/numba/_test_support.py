"""`numba.cuda.tests` and its `support`: what numba-cuda's examples and tests of programs take from them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
import unittest
from unittest import TestCase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def captured_output(stream_name: str) -> contextlib.AbstractContextManager[io.StringIO]:
    """Collect what Python writes to `sys.stdout` or `sys.stderr`, by its name, while a block runs."""
    return _replaced(stream_name)


def captured_stdout() -> contextlib.AbstractContextManager[io.StringIO]:
    """Collect what Python writes to `sys.stdout` while a block runs; what kernels print goes there, too."""
    return captured_output("stdout")


def captured_stderr() -> contextlib.AbstractContextManager[io.StringIO]:
    """Collect what Python writes to `sys.stderr` while a block runs."""
    return captured_output("stderr")


@contextlib.contextmanager
def _replaced(name: str) -> Iterator[io.StringIO]:
    before = getattr(sys, name)
    written = io.StringIO()
    setattr(sys, name, written)
    try:
        yield written
    finally:
        setattr(sys, name, before)


@contextlib.contextmanager
def override_config(name: str, value: Any) -> Iterator[None]:
    """Change a setting of numba's while a block runs."""
    config = importlib.import_module("numba.cuda.core.config")
    before = getattr(config, name)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, before)


linux_only = unittest.skipIf(not sys.platform.startswith("linux"), "linux only test")
windows_only = unittest.skipIf(not sys.platform.startswith("win"), "Windows only test")
skip_unless_cffi = unittest.skipUnless(importlib.util.find_spec("cffi") is not None, "requires cffi")


def load_testsuite(loader: unittest.TestLoader, dir: str) -> unittest.TestSuite:
    """Find the tests below a folder, for the `load_tests` of a package."""
    return loader.discover(dir, "test_*.py", loader._top_level_dir)  # type: ignore[attr-defined]


__all__ = [
    "TestCase",
    "captured_output",
    "captured_stderr",
    "captured_stdout",
    "linux_only",
    "load_testsuite",
    "override_config",
    "skip_unless_cffi",
    "windows_only",
]
