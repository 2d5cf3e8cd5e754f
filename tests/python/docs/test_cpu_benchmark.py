"""The benchmark of the CPU executor: each kernel has a reference implementation; tables say which are missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    import cpu
    import page
    import reference_kernels
    import tables
    from cpu import SETS
finally:
    sys.path.remove(str(BENCHMARKS))

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc: the reference kernels in C cannot be compiled")


def run(*options, **environment):
    command = [sys.executable, BENCHMARKS / "cpu.py", "--sizes", "tiny", "--repeats", "1", "--without-numba", *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"WEFT_DEVICE": "cpu"} | environment
    )


def test_each_kernel_has_a_twin_in_c_and_those_of_three_sets_one_for_numba():
    assert set(reference_kernels.NAMES) == {case.name for cases in SETS.values() for case in cases}
    for name in reference_kernels.NAMES.values():
        file, function = name.split(".")
        assert f"void {function}(" in (reference_kernels.FOLDER / f"{file}.c").read_text(encoding="utf-8")
    for name in reference_kernels.NAMES.keys() - reference_kernels.IN_C_ALONE:
        file, function = reference_kernels.NAMES[name].split(".")
        assert f"\ndef {function}(" in (reference_kernels.FOLDER / f"{file}.py").read_text(encoding="utf-8")


@needs_gcc
def test_every_twin_in_c_has_the_reference_s_results(tmp_path):
    library = reference_kernels.C(str(tmp_path), reference_kernels.NAMES)
    for case in (case for cases in SETS.values() for case in cases):
        work = case.work("tiny")
        with np.errstate(invalid="ignore"):  # there may be any NaN in outputs that are empty yet
            expected = case.reference(np, work.args)  # before the launch, which may write in place
        cpu.spoil(np, case, work, work.args)
        library.bind(case, work, work.args)()
        assert cpu.check(np, case, work, work.args, expected) <= case.tolerance, case.name


@pytest.mark.parametrize("which", ["first", "second", "fourth"])
def test_numba_s_references_have_the_reference_s_results(which):
    pytest.importorskip("numba.core")
    loops = reference_kernels.Numba()
    for case in (case for case in SETS[which] if case.name not in reference_kernels.IN_C_ALONE):
        work = case.work("tiny")
        cpu.spoil(np, case, work, work.args)
        loops.bind(case, work, work.args)()
        assert cpu.check(np, case, work, work.args, case.reference(np, work.args)) <= case.tolerance, case.name


@needs_gcc
def test_weft_and_c_take_turns_on_the_same_memory_and_write_figures(tmp_path):
    out = tmp_path / "out.json"
    done = run("--only", "stencil", "--json", out, OUT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert figures.keys() == {"cpu", "cpu-second"}
    for name, of_set in figures.items():
        assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) == of_set
        for row in of_set["rows"]:
            assert row["weft"]["first_ms"] > row["weft"]["min_ms"] > 0
            assert row["C"]["min_ms"] <= row["C"]["median_ms"]
            assert row["numba"] == {"failure": "left out"}
            assert tables.cpu_row(row) in done.stdout
    assert tables.cpu_facts(figures["cpu"]) in done.stdout


@pytest.mark.parametrize("which", ["third", "kinds"])
def test_these_sets_have_the_references_results_in_weft_and_none_for_numba(which, tmp_path):
    out = tmp_path / "out.json"
    done = run("--set", which, "--json", out)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(out.read_text(encoding="utf-8"))[f"cpu-{which}"]["rows"]
    assert {row["kernel"] for row in rows} == {case.name for case in SETS[which]}
    assert all("error" in row["weft"] and row["numba"] == {"failure": cpu.NO_VERSION} for row in rows)


def test_what_a_kernel_works_in_is_as_it_was_before_each_launch():
    case = next(case for case in SETS["third"] if case.name == "SRAD, update")
    work = case.work("tiny")
    image = work.args[8].copy()
    work.args[8][:] = 7
    cpu.spoil(np, case, work, work.args)
    assert (work.args[8] == image).all()


def test_without_gcc_weft_is_timed_alone_and_the_table_says_why():
    done = run("--only", "saxpy, grid", PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    cells = done.stdout.splitlines()[-3].split(" | ")
    assert cells[:2] == ["| saxpy, grid-stride", "no gcc here"]
    assert float(cells[2]) >= 0
    assert cells[3:6] == ["", "left out", ""]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--only", "nothing like this"], "no kernel's name contains 'nothing like this'"),
        (["--threads", "0"], "--threads: 0 is not from 1"),
        (["--repeats", "0"], "--repeats: there must be 1 at least"),
        (["--json", "/nowhere/out.json"], "no folder /nowhere"),
        pytest.param(
            ["--flags=-fno-such-flag"], "-fno-such-flag does not compile the reference kernels", marks=needs_gcc
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(options, told):
    done = run(*options)
    assert done.returncode != 0
    assert told in done.stderr


FIGURES = {
    "threads": 2, "flags": "-O3", "clock": "wall", "load": 0.25, "C": "12.2.0",
    "rows": [
        {"kernel": "even", "wider": False, "C": {"min_ms": 2.0, "error_text": "0.0e+00"},
         "weft": {"min_ms": 2.0, "first_ms": 30.4, "error_text": "1.0e-07"}, "numba": {"failure": "no numba here"}},
        {"kernel": "wide", "wider": True, "C": {"min_ms": 2.0}, "weft": {"min_ms": 8.0, "first_ms": 50.0},
         tables.NUMPY_TYPING: {"min_ms": 4.0}, "numba": {"min_ms": 4.0}},
        {"kernel": "broken", "failure": "MemoryError: too large"},
    ],
}  # fmt: skip


def test_the_table_has_speeds_and_their_means():
    table, told = tables.TABLES["cpu-second"](FIGURES).split("\n\n")
    assert table.splitlines()[2:] == [
        "| even | 2.00 | 2.00 | 1.00 | no numba here |  | 30 | 0.0e+00 / 1.0e-07 / - |",
        "| wide (wider) | 2.00 | 8.00 | 0.25 (0.50) | 4.00 | 0.50 (1.00) | 50 | - / - / - |",
        "| broken | MemoryError: too large |  |  |  |  |  |  |",
    ]
    assert told == (
        "Times: least ms on 2 threads, gcc 12.2.0 -O3, load average 0.2 before. In the geometric mean weft has 0.500 "
        "of C's speed. Where Numba's typing is wider it has 0.250, with `typing=\"numpy\"` 0.500. In the geometric "
        "mean weft has 0.500 of numba's speed. Where Numba's typing is wider it has 0.500, with `typing=\"numpy\"` "
        "1.000. numba has 0.500 of C's. A first launch takes 40 ms in the mean, 50 at most."
    )
    assert "cpu.py --set second" in page.block("cpu-second", None)
    assert "cpu.py --set third" in page.block("cpu-third", None)


def test_a_wrong_result_and_a_kernel_that_fails_are_failures():
    assert cpu.failures(FIGURES) == 1
    right = FIGURES["rows"][0]
    wrong = right | {"C": {"min_ms": 2.0, "error_text": "1.0e+00 WRONG"}}
    failed = right | {"weft": {"failure": "TypeError"}}
    assert cpu.failures({"rows": [right, wrong, failed]}) == 2
