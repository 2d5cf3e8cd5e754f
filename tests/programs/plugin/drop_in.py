"""A plugin of pytest for the tests of programs: they ran on weft, or they did not run."""

import sys

import pytest


def pytest_sessionstart(session):
    from numba import cuda

    if cuda.implementation != "weft":
        raise pytest.UsageError(f"numba.cuda is that of {cuda.__file__}, not weft's")


def pytest_sessionfinish(session):
    """A session in which no device was used has tested nothing."""
    from weft import _weft

    if session.testscollected and not _weft.is_device_chosen() and not session.config.option.collectonly:
        print("no test has used a device", file=sys.stderr)
        session.exitstatus = 1
