"""Wrong calls and kernels: none ends the interpreter or is silent, and each raises the class that Python's own
functions would, with a message that names the fault and suggests a fix."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu
HERE = Path(__file__).parent
MODULES = sorted(file.stem for file in (HERE / "bad_calls").glob("of_*.py"))


def rows(module):
    sys.path.insert(0, str(HERE))
    try:
        return importlib.import_module(f"bad_calls.{module}").CASES
    finally:
        sys.path.remove(str(HERE))


def judged(module):
    """The verdict and the message of each row of a module."""
    count = len(rows(module))
    found = {}
    while len(found) < count:
        ran = subprocess.run(
            [sys.executable, "-m", "bad_calls.run", module, str(len(found))],
            cwd=HERE,
            env={**os.environ, "WEFT_DEVICE": "cpu"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        for line in ran.stdout.splitlines():
            kind, number, *text = json.loads(line)
            found[number] = ("crash", "") if kind == "begin" else (kind, text[0])
        last = max(found, default=-1)
        assert last >= 0, ran.stderr
        if found[last][0] == "crash":
            found[last] = ("crash", f"it ended the process with {ran.returncode}: {ran.stderr[-2000:]}")
        else:
            assert ran.returncode == 0, ran.stderr
    return found


@pytest.mark.parametrize("module", MODULES)
def test_each_is_told(module):
    cases = rows(module)
    wrong = [
        f"{kind}: {cases[number].name}\n    {text}"
        for number, (kind, text) in sorted(judged(module).items())
        if kind != "good"
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_many():
    codes = [case.code for module in MODULES for case in rows(module)]
    assert len(set(codes)) == len(codes) >= 400
