"""Each planted fault is found, at its lines only; clean kernels have no findings."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import weft.errors

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
cases = importlib.import_module("cases")
for file in sorted([*HERE.glob("planted_*.py"), *HERE.glob("clean_*.py")]):
    importlib.import_module(file.stem)

pytestmark = pytest.mark.cpu


def _found(case: cases.Case) -> list[weft.errors.SanitizerError]:
    try:
        case.launch()
    except weft.errors.SanitizerError as error:
        return error.findings
    return []


@pytest.mark.parametrize("case", [case for case in cases.CASES if case.tool], ids=lambda case: case.name)
def test_a_planted_fault_is_found_at_its_lines(case: cases.Case) -> None:
    found = _found(case)
    text = "\n\n".join(map(str, found))
    assert found, "nothing was found"
    assert {finding.tool for finding in found} == set(case.tool.split(",")), text
    lines = {access.line for finding in found for access in finding.accesses if access.what != "end"}
    faults = case.lines("# fault")
    assert lines <= faults | case.lines("# may"), text
    assert faults <= lines, f"{sorted(faults - lines)} not found\n{text}"
    for finding in found:
        assert finding.kernel == case.name
        assert finding.count > 0
        assert finding.message
        assert finding.help
        assert all(access.text.strip() and access.file.endswith(".py") for access in finding.accesses)


@pytest.mark.parametrize("case", [case for case in cases.CASES if not case.tool], ids=lambda case: case.name)
def test_nothing_is_found_in_a_clean_kernel(case: cases.Case) -> None:
    found = _found(case)
    assert not found, "\n\n".join(map(str, found))
