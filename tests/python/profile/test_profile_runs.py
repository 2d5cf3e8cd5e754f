"""Profiles of programs that no command profiles: `WEFT_PROFILE`, and `pytest --weft-profile`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import pytest
from weft._profile_files import read
from weft._profile_html import page

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.environ["WEFT_DEVICE"] != "cpu", reason="profiles are counted on the CPU")

PROGRAM = """
import numpy as np
from weft import cuda


@cuda.jit
def exchanged(a, out):
    i, j = cuda.grid(2)
    out[i, j] = a[i, j]


def launch():
    a = np.ones((64, 64), np.float32)
    exchanged[(2, 2), (32, 32)](a, np.zeros_like(a))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def run(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_PROFILE")} | env
    return subprocess.run([sys.executable, *args], cwd=folder, env=env, capture_output=True, text=True, check=False)


LAUNCHES = "import program; program.launch(); program.launch(); print('done')"


def test_the_report_is_printed_at_the_end(program: Path) -> None:
    done = run(program.parent, "-c", LAUNCHES, WEFT_PROFILE="1", WEFT_DEVICE="auto")
    assert (done.returncode, done.stdout) == (0, "done\n")
    # The setting chooses the CPU, so nothing says that there is no GPU.
    assert done.stderr.startswith("exchanged[(2, 2), (32, 32)](")
    assert "on h100\n  one of 2 launches\n" in done.stderr
    assert "uncoalesced at program.py, line 9" in done.stderr
    assert run(program.parent, "-c", LAUNCHES, WEFT_PROFILE="0").stderr == ""


def test_the_report_of_a_program_that_fails(program: Path) -> None:
    done = run(program.parent, "-c", f"{LAUNCHES}; 1 / 0", WEFT_PROFILE="1")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "uncoalesced at program.py" in done.stderr


@pytest.mark.parametrize("suffix", ["txt", "json", "html"])
def test_the_report_is_written_to_a_file(program: Path, suffix: str) -> None:
    options = {"WEFT_PROFILE": f"report-%p.{suffix}", "WEFT_PROFILE_GPU": "a100"}
    done = run(program.parent, "-c", LAUNCHES, **options)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = program.parent.glob(f"report-*.{suffix}")
    assert file.stem.partition("-")[2].isdigit()
    text = file.read_text()
    assert "exchanged" in text
    assert "a100" in text
    if suffix == "json":
        (profile,) = read(file)
        assert json.loads(profile.to_json()) == json.loads(text)[0]
        assert "uncoalesced" in page([profile])


def test_a_file_that_cannot_be_written(program: Path) -> None:
    done = run(program.parent, "-c", LAUNCHES, WEFT_PROFILE="missing/report.html")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.startswith("weft profile: [Errno 2]")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"WEFT_PROFILE": "yes"}, 'WEFT_PROFILE is "yes"; it can be 0, 1, on, off, or a file that ends in'),
        ({"WEFT_PROFILE": "1", "WEFT_PROFILE_GPU": "gtx999"}, "there is no GPU `gtx999`; the names are t4, "),
        ({"WEFT_PROFILE": "1", "WEFT_DEVICE": "cuda"}, "WEFT_PROFILE profiles kernels on the CPU"),
    ],
)
def test_wrong_settings(program: Path, env: dict[str, str], message: str) -> None:
    done = run(program.parent, "-c", LAUNCHES, **env)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_fork_reports_nothing(program: Path) -> None:
    fork = "import os, program; program.launch(); child = os.fork(); program.launch(); child and os.waitpid(child, 0)"
    done = run(program.parent, "-c", fork, WEFT_PROFILE="1")
    assert done.stderr.count("exchanged[") == 1
    assert "one of 2 launches" in done.stderr


def test_a_launch_that_cannot_be_profiled_is_named_once(program: Path) -> None:
    program.write_text(PROGRAM.replace("a[i, j]", "a[i + 4096, j]"))
    done = run(program.parent, "-c", LAUNCHES, WEFT_PROFILE="1")
    assert done.stderr.count("weft profile: kernel `exchanged` cannot be simulated") == 1


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    is_installed = "weft" in {point.name for point in entry_points(group="pytest11")}
    plugin = [] if is_installed else ["-p", "weft._pytest"]
    return run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options)


@pytest.fixture
def tests(program: Path) -> Path:
    names = "abc"
    functions = "".join(f"\n\ndef test_{name}():\n    program.launch()\n" for name in names)
    (program.parent / "test_it.py").write_text(f"import program{functions}")
    return program.parent


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_pytest_shows_the_findings_at_the_end(tests: Path, options: list[str]) -> None:
    if options:
        pytest.importorskip("xdist")
    shown = run_pytest(tests, "--weft-profile", "--weft-profile-gpu", "a100", *options).stdout
    assert "3 passed" in shown
    assert " weft profile for a100 " in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("exchanged[")]
    assert line.startswith("exchanged[(2, 2), (32, 32)] on a100: at least ")
    assert line.partition(" (test_it.py::test_")[2][1:] == ")"
    assert "  uncoalesced, " in shown
    assert "program.py:9: out[i, j] = a[i, j]" in shown


def test_pytest_writes_the_report(tests: Path) -> None:
    shown = run_pytest(tests, "--weft-profile-report", "report.json").stdout
    assert "the report is in report.json" in shown
    (profile,) = read(tests / "report.json")
    assert (profile.kernel, profile.launches) == ("exchanged", 3)


def test_pytest_refuses_wrong_options(tests: Path) -> None:
    done = run_pytest(tests, "--weft-profile", "--weft-profile-gpu", "gtx999")
    assert done.returncode == 4
    assert "--weft-profile-gpu: there is no GPU `gtx999`" in done.stderr
    done = run_pytest(tests, "--weft-profile-report", "report.pdf")
    assert "report.pdf must end in .txt, .json or .html" in done.stderr


def test_pytest_without_the_option_imports_no_profiler(tests: Path) -> None:
    source = "import sys\n\ndef test_it():\n    assert 'weft._profile_program' not in sys.modules\n"
    (tests / "test_it.py").write_text(source)
    assert "1 passed" in run_pytest(tests).stdout
