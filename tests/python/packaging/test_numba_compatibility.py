"""The page of numba-cuda's tests lists each test that does not pass once, under its reason."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tests" / "numba_compatibility"


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOL)
    return importlib.import_module("page"), importlib.import_module("reasons")


def results(**outcomes):
    tests = {
        f"cudapy/test_a.py::Test::test_{name}": {"state": state, "detail": detail}
        for name, (state, detail) in outcomes.items()
    }
    states = [outcome["state"] for outcome in tests.values()]
    counts = {state: states.count(state) for state in ("passed", "failed", "error", "skipped")}
    return {
        "device": "cpu",
        "tests_version": "0.30.4",
        "meta": {"python": "3.11.7"},
        "summary": {"total": len(tests), **counts},
        "modules": {"cudapy/test_a.py": counts},
        "tests": tests,
    }


def test_totals_and_reasons(tool):
    page, _ = tool
    text = page.page(
        results(
            one=("passed", ""),
            two=("error", "AttributeError: 'DeviceNDArray' object has no attribute 'get_ipc_handle'"),
            three=("skipped", "Skipped: need more than 1 gpus"),
            four=("failed", "E   ValueError: an unheard-of `fault`"),
        ),
        "1234567",
    )
    assert "**1 of the 4** public tests of numba-cuda 0.30.4 pass on the CPU executor." in text
    assert "(weft 1234567, Python 3.11.7)" in text
    assert "| cudapy/test_a.py | 1 | 4 |" in text
    assert "**device memory shared between processes** (1)\n\n- cudapy/test_a.py: two\n" in text
    assert "**needs more than one GPU** (1)\n\n- cudapy/test_a.py: three\n" in text
    assert "**ValueError: an unheard-of 'fault'** (1)\n\n- cudapy/test_a.py: four\n" in text
    assert "one" not in text.split("## By module")[1].replace("more than one", "")


def test_what_nobody_classified_comes_last_and_says_so(tool):
    _, reasons = tool
    assert list(reasons.KINDS)[-1] == reasons.UNKNOWN
    unknown = reasons.reason("cudapy/test_a.py::Test::test_b", "/home/me/project/file.py:3: KeyError")
    assert unknown == reasons.Reason(reasons.UNKNOWN, "file.py:3: KeyError")
    assert reasons.reason("cudapy/test_a.py::Test::test_b", "").text == "no message"


def test_tests_of_one_name_are_counted(tool):
    page, _ = tool
    named = list(page.names(["m.py::A::test_x", "m.py::B::test_x", "m.py::B::test_y", "n.py::test_z"]))
    assert named == ["- m.py: x (2), y", "- n.py: z"]


def test_a_missing_package_hides_no_failure_of_weft(tool):
    _, reasons = tool
    missing = reasons.reason("cudapy/test_a.py::T::test_b", "E   ModuleNotFoundError: No module named 'cupy'")
    assert missing.kind == reasons.ELSEWHERE
    own = reasons.reason("cudapy/test_a.py::T::test_b", "'DeviceNDArray' object has no attribute 'get_ipc_handle'")
    assert own.kind == reasons.MISSING
