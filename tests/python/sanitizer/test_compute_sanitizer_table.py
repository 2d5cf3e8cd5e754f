"""The comparison with compute-sanitizer counts the reports of a fake compute-sanitizer, and lists cases that did not
run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu

SCRIPT = Path(__file__).with_name("beside_compute_sanitizer.py")

STAND_IN = """#!/bin/sh
tool=$2
for kernel; do :; done
case $kernel in broken) echo "cannot open the device"; exit 1;; esac
echo "weft: launched"
case $tool,$kernel in
  memcheck,one_too_far)
    echo "========= Invalid __global__ read of size 4 bytes"
    echo "=========     at one_too_far+0x90 in planted_memory.py:LINE"
    echo "========= ERROR SUMMARY: 1 error"
    exit 86;;
  racecheck,no_guard) echo "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"; exit 0;;
  *,far_below) sleep 60;;
  *,far_above) exit 139;;
  racecheck,*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)";;
  *) echo "========= ERROR SUMMARY: 0 errors";;
esac
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the comparison with a fake compute-sanitizer."""
    program = folder / "compute-sanitizer"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    command = [sys.executable, str(SCRIPT), "--sanitizer", str(program), "--jobs", "4", *options]
    return subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=300, check=False)


def test_what_is_counted(tmp_path: Path) -> None:
    source = SCRIPT.with_name("planted_memory.py").read_text(encoding="utf-8").splitlines()
    line = next(at for at, text in enumerate(source, 1) if "# fault" in text)
    file = tmp_path / "all.json"
    options = ["--only", "one_too_far,no_guard,guard_with,far_below,far_above", "--seconds", "1", "--json", str(file)]
    done = run(tmp_path, STAND_IN.replace("LINE", str(line)), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| memcheck | out of bounds | 5 | 5 | 2 | 1 | 1 |" in done.stdout
    assert f"| `one_too_far` | memcheck: out of bounds | {line} | memcheck: found, lines {line} |" in done.stdout
    every = json.loads(file.read_text())
    rows = {row["name"]: [(seen["tool"], seen["outcome"]) for seen in row["seen"]] for row in every}
    assert rows["one_too_far"] == [("memcheck", "found")]
    assert rows["no_guard"] == [("memcheck", "nothing"), ("racecheck", "found")]
    assert {outcome for _, outcome in rows["guard_with_or_equal"]} == {"nothing"}
    assert {outcome for _, outcome in rows["far_below"]} == {"did not end"}
    assert {outcome for _, outcome in rows["far_above"]} == {"did not run"}
    assert len(rows["far_above"]) == 4
    assert "`far_above` did not run" in done.stderr


def test_a_compute_sanitizer_that_does_not_work_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, "#!/bin/sh\necho no device\nexit 1\n", "--only", "one_too_far")
    assert done.returncode == 2
    assert "did not run\nno device" in done.stderr
    assert not done.stdout


def test_what_there_is_no_time_for_is_not_counted(tmp_path: Path) -> None:
    done = run(tmp_path, STAND_IN, "--only", "far_below,no_guard", "--budget", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no time for 2 kernels: no_guard, far_below" in done.stdout
    assert "| all |  | 0 | 0 | 0 | 0 | 0 |" in done.stdout
