"""The tool that runs the tests of programs from PyPI: its table, its page, and how it handles results."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tests" / "programs"


@pytest.fixture
def tool(monkeypatch):
    """The tool's modules by name. Other tests use the same names for other modules."""
    monkeypatch.syspath_prepend(TOOL)
    names = ("table", "page", "run")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        del sys.modules[name]


def test_the_table_says_what_to_run(tool):
    programs = tool["table"].read()
    assert len(programs) >= 12
    for name, program in programs.items():
        assert program.name == name
        assert program.tests or program.check


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('needs = ["nothing-known"]\ncheck = true', "have no version here"),
        ("needs = []", "nothing to run"),
        ("needs = []\ncheck = true", "there is no .*check_unknown.py"),
        ('tests = ["t"]\nreasons = [{ why = "so", fault = "nobody" }]', "the fault is one of"),
    ],
)
def test_rows_that_make_no_sense(tool, tmp_path, row, words):
    file = tmp_path / "programs.toml"
    file.write_text(f'[common]\n[programs.unknown]\nwhat = "x"\nversion = "1"\n{row}\n')
    with pytest.raises(ValueError, match=words):
        tool["table"].read(file)


def test_the_page_is_that_of_the_table_and_the_results(tool):
    page, table = tool["page"], tool["table"]
    text = page.page(table.read(), page.read())
    assert (ROOT / "docs" / "numba-programs.md").read_text() == text, "run ./weft-dev bless"


def test_what_does_not_pass_stands_under_its_reason(tool):
    table, page = tool["table"], tool["page"]
    reason = table.Reason("it wants a printer", "device", message="no printer")
    slow = "tests/test_a.py::test_slow[3]"
    program = table.Program("thing", "2", "a thing", [], tests=["tests"], slow=[slow], reasons=[reason])
    others = {
        "tests.test_a::test_two[a]": ["failed", "OSError: no printer\nmore"],
        "tests.test_a::test_two[b]": ["failed", "OSError: no printer"],
        "tests.test_b::test_three": ["skipped", "no | here"],
    }
    found = {"cpu": {"thing": {"version": "2", "passed": 1, "others": others}}, "cuda": {}}
    text = page.page({"thing": program}, found)
    assert "| [thing](https://pypi.org/project/thing/2/) 2 | a thing | its own | 1 of 3 | – |" in text
    assert "- 2 failed, needs a device that this run did not have: it wants a printer (`test_two`)" in text
    assert "- 1 skipped, not classified: no \\| here (`test_three`)" in text
    assert text.count("`test_slow`") == 1
    assert text.endswith("NVIDIA GPU\n\nNothing.\n")
    older = page.page({"thing": program}, {"cpu": {"thing": {"version": "1", "passed": 0, "others": {}}}})
    assert "| 0 of 0 (1) |" in older


def test_packages_are_found_in_a_folder(tool, tmp_path):
    run, table = tool["run"], tool["table"]
    for name in (
        "A_b-1.0-py3-none-any.whl",
        "a_b-1.0.1-py3-none-any.whl",
        "a-b-1.0.tar.gz",
        "a_b_c-1.0-py3-none-any.whl",
    ):
        (tmp_path / name).touch()
    assert run.wheel_of("a-b==1.0", tmp_path).name == "A_b-1.0-py3-none-any.whl"
    assert run.wheel_of("a.b==1.0.1", tmp_path).name == "a_b-1.0.1-py3-none-any.whl"
    assert run.wheel_of("a-b==2", tmp_path) is None
    assert run.archive_of(table.Program("A.b", "1.0", "", []), tmp_path).name == "a-b-1.0.tar.gz"


def test_what_is_not_in_the_folder_is_named(tool, tmp_path):
    with pytest.raises(SystemExit, match="there is no wheel of missing==1"):
        tool["run"].installed("missing==1", tmp_path)
    with pytest.raises(SystemExit, match="the source archive of missing==1"):
        tool["run"].sources(tool["table"].Program("missing", "1", "", [], tests=["t"]), tmp_path)


def test_reports_are_read(tool, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        f"""<testsuites><testsuite>
        <testcase classname="tests.test_a" name="test_one"/>
        <testcase classname="tests.test_a" name="test_two">
        <failure message="at 0x7f1234567890 in {tmp_path}/x">t</failure></testcase>
        <testcase classname="" name="tests.test_b"><error message="collection failure">x.py:1: in &lt;module&gt;
E   ImportError: no module
</error></testcase>
        <testcase classname="tests.test_a" name="test_four"><skipped message="none here"/></testcase>
        </testsuite></testsuites>"""
    )
    assert dict(tool["run"].read_report(report, tmp_path)) == {
        "tests.test_a::test_one": ["passed", ""],
        "tests.test_a::test_two": ["failed", "at 0x… in /x"],
        "tests.test_b": ["error", "ImportError: no module"],
        "tests.test_a::test_four": ["skipped", "none here"],
    }
