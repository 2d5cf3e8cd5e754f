"""`weft sanitize` reports and counts findings of child processes, and exits with 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cpu

RACE = """
import numpy as np
from weft import cuda

@cuda.jit
def racy(a):
    a[0] = cuda.threadIdx.x

def launch(threads=32):
    racy[1, threads](np.zeros(10))
"""
STARTS = {
    "subprocess": """
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "race.py"]).returncode)
""",
    "fork": """
import os, race
child = os.fork()
if child == 0:
    race.launch()
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
""",
}
POOL = """
import multiprocessing, race
if __name__ == "__main__":
    process = multiprocessing.get_context({method!r}).Process(target=race.launch)
    process.start()
    process.join()
    assert process.exitcode == 0
    print("ended well")
"""
STARTS |= {f"multiprocessing-{method}": POOL.format(method=method) for method in ("fork", "spawn", "forkserver")}


def sanitize(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_SANITIZE")}
    command = [sys.executable, "-m", "weft.sanitize", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment | {"WEFT_DEVICE": "cpu", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("start", STARTS)
def test_findings_of_a_child_are_reported(start: str, tmp_path: Path) -> None:
    (tmp_path / "race.py").write_text(RACE + 'if __name__ == "__main__":\n    launch()\n')
    (tmp_path / "program.py").write_text(STARTS[start])
    ran = sanitize(tmp_path, "program.py")
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr.count("error[racecheck]") == 1, ran.stderr
    assert ran.stderr.endswith("weft sanitize: 1 fault found\n")
    assert "race.py:7:" in ran.stderr
    assert not list(tmp_path.glob("weft-sanitize-*"))


def test_findings_of_all_processes_are_merged(tmp_path: Path) -> None:
    (tmp_path / "race.py").write_text(RACE)
    (tmp_path / "program.py").write_text(
        "import multiprocessing, race\n"
        'if __name__ == "__main__":\n'
        "    race.launch(2)\n"
        '    with multiprocessing.get_context("spawn").Pool(2) as pool:\n'
        "        pool.map(race.launch, [64, 32], chunksize=1)\n"
        "        pool.close()\n"
        "        pool.join()\n"
    )
    ran = sanitize(tmp_path, "--json", "program.py")
    assert ran.returncode == 1, ran.stderr
    (finding,) = json.loads(ran.stdout)
    assert finding["kind"] == "race within a block"
    assert finding["count"] == 1 + 63 + 31
    assert [access["array"] for access in finding["accesses"]] == ["a", "a"]


def test_a_child_without_faults_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        "sys.exit(subprocess.run([sys.executable, '-c', 'import weft; raise SystemExit(7)']).returncode)\n"
    )
    ran = sanitize(tmp_path, "program.py")
    assert ran.returncode == 7
    assert "nothing found" in ran.stderr


def test_a_process_that_outlives_the_report_raises(tmp_path: Path) -> None:
    (tmp_path / "race.py").write_text(RACE + "launch()\n")
    environment = os.environ | {
        "WEFT_DEVICE": "cpu",
        "WEFT_SANITIZE": "all",
        "WEFT_SANITIZE_REPORT": str(tmp_path / "gone"),
    }
    command = [sys.executable, "race.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 1
    assert "SanitizerError" in ran.stderr
    (tmp_path / "gone").mkdir()
    assert subprocess.run(command, cwd=tmp_path, env=environment, check=False, timeout=120).returncode == 0
    (file,) = (tmp_path / "gone").glob("*.jsonl")
    assert json.loads(file.read_text())["tool"] == "racecheck"
