"""The benchmark that compares the passes of the CPU planner on and off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    import passes
finally:
    sys.path.remove(str(BENCHMARKS))


def run(*options):
    command = [sys.executable, BENCHMARKS / "passes.py", "--sizes", "tiny", "--repeats", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"WEFT_DEVICE": "cpu"})


@pytest.mark.cpu
def test_a_pass_fires_on_the_kernels_whose_plans_it_changes():
    done = run("--sets", "first", "--kernels", "saxpy", "--only", "guards,transpose")
    assert done.returncode == 0, done.stderr
    assert "| `guards` | 2 |" in done.stdout
    assert "| `transpose` | 0 |" in done.stdout


@pytest.mark.cpu
def test_an_unknown_pass_is_refused():
    done = run("--only", "guards,nonsense")
    assert done.returncode != 0
    assert "no optional pass is named nonsense; the passes are" in done.stderr


def test_slower_kernels_and_wrong_outputs_are_listed():
    row = {"pass": "guards", "set": "first", "is_right": True, "with_ms": 1.0}
    rows = [
        row | {"kernel": "faster", "without_ms": 2.0},
        row | {"kernel": "slower", "without_ms": 0.5},
        row | {"kernel": "other", "without_ms": 1.0, "is_right": False},
    ]
    text = passes.table(rows, ["guards", "dead"])
    assert "| `guards` | 3 | 1.000 | 2.00 faster | 0.50 slower |" in text
    assert "| `dead` | 0 |" in text
    assert "- `guards`: slower (first), 2.00 times as slow with it" in text
    assert text.index("WRONG") < text.index("- `guards`: other (first)")
