"""docs/benchmarks.md and docs/benchmarks.svg are generated from docs/benchmarks/. Some figures may be missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCHMARKS = ROOT / "tests" / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    import drawing
    import page
    import tables
    from suite import backends
finally:
    sys.path.remove(str(BENCHMARKS))

MACHINE = {"device": "a <GPU> & more", "driver": "1.2", "CPU cores": 4, "Python": "3.12.1"}


def record(figures):
    return {"date": "2026-01-02", "machine": MACHINE, "figures": figures}


LAUNCH = {
    "cuLaunchKernel from C": {"0": 2000.0, "4": 2500.0},
    "weft, `kernel[1, 32](...)`": {"0": 3000.0, "4": 3750.0},
    "CuPy RawKernel": "no cupy here",
}
KERNELS = {
    "rows": [
        {"kernel": "fast", "floor_us": 1.0, "C++": {"median_us": 8.0, "error_text": "0.0e+00"},
         "weft": {"median_us": 4.0, "error_text": "1.0e-07"}, "numba-cuda": {"failure": "no numba here"}},
        {"kernel": "slow", "floor_us": 2.0, "C++": {"median_us": 2.0}, "weft": {"median_us": 4.0}},
        {"kernel": "broken", "failure": "MemoryError: too large"},
    ]
}  # fmt: skip
MEMORY = {
    "sizes": [1, 1 << 28],
    "microseconds": {
        "allocate": {"weft": [0.5, 0.75]},
        "into an array there": {"weft": [10.0, 16384.0], "CuPy": "no cupy here"},
    },
    "missing": {"PyTorch": "no torch here"},
}


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_page_is_made_of_the_figures():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_tables(text, page.kept()) == text, "./weft-dev bless makes it anew"


def test_the_picture_is_drawn_of_the_figures():
    assert drawing.draw(page.kept()) == page.PICTURE.read_text(encoding="utf-8"), "./weft-dev bless draws it anew"
    narrow = drawing.draw(page.kept(), drawing.NARROW)
    assert narrow == page.NARROW.read_text(encoding="utf-8"), "./weft-dev bless draws it anew"


def test_the_readme_shows_the_picture_and_says_what_is_on_it():
    alt = re.search(r"!\[([^\]]+)\]\(docs/benchmarks\.svg\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert alt
    assert len(alt[1]) > 40


def test_a_launch_that_was_not_measured_says_why():
    lines = tables.launch(LAUNCH).splitlines()
    assert lines[0] == "| launched by | 0 arrays | 4 arrays |"
    assert lines[3:] == [
        "| weft, `kernel[1, 32](...)` | 3000 (1.50) | 3750 (1.50) |",
        "| CuPy RawKernel | no cupy here |  |",
    ]
    without_base = {name: times for name, times in LAUNCH.items() if name != tables.C_LAUNCH}
    assert "| 3000 | 3750 |" in tables.launch(without_base)
    assert "| 3000 | 3750 |" in tables.launch({tables.C_LAUNCH: "no gcc", **without_base})


def test_copies_have_their_bandwidth_and_allocations_have_none():
    lines = tables.memory(MEMORY).splitlines()
    assert lines[2] == "| allocate | weft | 0.5 | 0.8 |"
    assert lines[3] == "| into an array there | weft | 10.0 | 16384.0 (16.4) |"
    assert lines[4] == "| into an array there | CuPy | no cupy here |  |"
    assert lines[5] == "|  | PyTorch | no torch here |  |"


def test_kernels_that_failed_are_no_part_of_the_mean():
    table, told = tables.kernels(KERNELS).split("\n\n")
    lines = table.splitlines()
    assert lines[2] == "| fast | 1.0 | 8.0 | 4.0 | 0.500 | no numba here |  | 0.0e+00 / 1.0e-07 / - |"
    assert lines[3] == "| slow | 2.0 | 2.0 | 4.0 | 2.000 | not measured |  | - / - / - |"
    assert lines[4].startswith("| broken | MemoryError: too large |")
    assert told.startswith("The geometric mean of the ratios is 1.000 for weft.")


def test_the_summary_has_the_mean_and_the_worst_kernel():
    lines = tables.summary({"kernels": record(KERNELS), "launch": record(LAUNCH)}).splitlines()
    assert lines[2] == "| 2 kernels on a GPU, first set | CUDA C++ | 1.00 of its time | 2.00: slow |"
    assert lines[3].startswith("| a launch | `cuLaunchKernel` called from C | 1.50 of its time | 1.50: ")


def test_reasons_have_no_colors_of_a_terminal():
    assert tables.plain("TypingError: \x1b[0m") == "TypingError"
    assert "\x1b" not in page.PAGE.read_text(encoding="utf-8")


def test_the_picture_has_the_figures_and_says_what_is_missing():
    svg = drawing.draw({"launch": record(LAUNCH), "kernels": record(KERNELS), "memory": record(MEMORY)})
    found = texts(svg)
    assert {"2.0", "2.5", "3.0", "3.8", "16.4", "0.50", "2.00", "–"} <= set(found)
    assert "Copies of 256 MiB" in found
    assert "a <GPU> & more, driver 1.2, 4 CPU cores, Python 3.12.1, 2026-01-02" in found
    # CuPy's launches with and without arrays, numba-cuda's, and so on.
    assert found.count(tables.MISSING) >= 4
    assert "prefers-color-scheme:dark" in svg


def test_the_narrow_picture_has_the_same_figures_in_one_column():
    records = {"launch": record(LAUNCH), "kernels": record(KERNELS), "memory": record(MEMORY)}
    wide, narrow = drawing.draw(records), drawing.draw(records, drawing.NARROW)
    where = "a <GPU> & more"
    assert [each for each in texts(narrow) if where not in each] == [each for each in texts(wide) if where not in each]
    places = [float(each.get("x")) for each in ET.fromstring(narrow).iter("{http://www.w3.org/2000/svg}text")]
    assert max(places) <= drawing.NARROW - drawing.MARGIN


def test_a_longer_time_is_a_longer_bar_and_1_is_where_kernels_are_as_fast():
    svg = ET.fromstring(drawing.draw({"launch": record(LAUNCH), "kernels": record(KERNELS)}))
    bars = [float(each.get("width")) for each in svg.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert bars == pytest.approx([bars[3] * time / 3750 for time in (2000, 3000, 2500, 3750)], abs=0.1)
    fast, slow = [float(each.get("cx")) for each in svg.iter("{http://www.w3.org/2000/svg}circle")]
    marked = [each for each in svg.iter("{http://www.w3.org/2000/svg}line") if each.get("stroke-width") == "1.5"]
    assert [float(each.get("x1")) for each in marked] == pytest.approx([(fast + slow) / 2], abs=0.1)


def test_a_picture_of_nothing_says_so_three_times():
    assert texts(drawing.draw({})).count(tables.MISSING) == 3


def test_machines_that_differ_are_told_apart():
    other = record(KERNELS) | {"date": "2026-01-03"}
    found = texts(drawing.draw({"launch": record(LAUNCH), "memory": record(MEMORY), "kernels": other}))
    assert any(text.startswith("launches, copies: ") and text.endswith("2026-01-02") for text in found)
    assert any(text.startswith("kernels: ") and text.endswith("2026-01-03") for text in found)


def test_figures_are_kept_of_those_programs_that_were_run(tmp_path):
    (tmp_path / "launch.json").write_text("{}")
    assert page.keep({"memory": record(MEMORY), "compile": record({})}, tmp_path) == ["memory"]
    assert page.kept(tmp_path) == {"launch": {}, "memory": record(MEMORY)}
    with pytest.raises(ValueError, match="'memory' has no date, machine and figures"):
        page.keep({"memory": MEMORY}, tmp_path)


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="made of benchmarks/kernels"):
        page.with_tables("# A page\n", {})


def test_run_gathers_figures_with_date_and_machine(tmp_path):
    """compile.py is the fastest program that writes figures without a GPU."""
    out = tmp_path / "out.json"
    command = [sys.executable, BENCHMARKS / "run.py", "--device", "cpu", "--only", "compile", "--json", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    gathered = json.loads(out.read_text())
    assert gathered.keys() == {"compile"}
    assert gathered["compile"]["machine"].keys() >= {"device", "CPU cores", "Python", "weft"}
    assert gathered["compile"]["figures"]["to_ptx_ms"]


@pytest.mark.parametrize(
    ("options", "told"),
    [(["--only", "nothing"], "no benchmark 'nothing'"), (["--json", "/nowhere/out.json"], "no folder /nowhere")],
)
def test_run_refuses_what_it_cannot_do(options, told):
    command = [sys.executable, BENCHMARKS / "run.py", "--device", "cpu", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert told in done.stderr


SECOND = {
    "rows": [
        {"kernel": "narrow", "wider": False, "floor_us": 1.0, "C++": {"median_us": 8.0}, "weft": {"median_us": 4.0},
         "C++ __restrict__": {"median_us": 6.0}},
        {"kernel": "wide", "wider": True, "floor_us": 1.0, "C++": {"median_us": 2.0}, "weft": {"median_us": 4.0},
         "C++ __restrict__": {"median_us": 1.5}, tables.NUMPY_TYPING: {"median_us": 2.2}},
    ]
}  # fmt: skip


def test_kernels_that_compute_in_wider_types_have_a_mean_of_their_own():
    table, told = tables.TABLES["kernels-second"](SECOND).split("\n\n")
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| narrow", "| wide (wider)"]
    assert [line.split(" | ")[4] for line in table.splitlines()[2:]] == ["0.500", "2.000 (1.100)"]
    assert told == (
        "The geometric mean of the ratios is 1.000 for weft. For weft it is 0.500 of the 1 kernels that compute in the "
        'types of the C++ version, and 2.000 of the 1 in which Numba\'s typing is wider. With `typing="numpy"` these '
        "take 1.100. "
        "C++ with `__restrict__` takes 0.750 of the time of C++ as written."
    )


def test_a_set_of_kernels_without_figures_says_how_they_are_measured():
    assert "kernels.py --set second" in page.block("kernels-second", None)


def test_a_twin_is_restricted_at_each_pointer_of_its_kernel_once():
    code = "__device__ int f(int* a);\nvoid peer(const int* a, float *__restrict__ b, int** c, int n) { a * b; }"
    assert backends.restricted(code) == (
        "__device__ int f(int* a);\n"
        "void peer(const int* __restrict__ a, float *__restrict__ b, int** __restrict__ c, int n) { a * b; }"
    )
