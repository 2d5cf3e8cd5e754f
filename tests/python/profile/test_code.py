"""The machine code of a profile: what of the PTX `ptxas` changes."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from weft import cuda
from weft._profile_code import differences, ptx_by_line, sass_by_line

SASS = """
	.section	.text.k,"ax",@progbits
k:
	//## File "/a/k.py", line 4
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/a/k.py", line 8
        /*0080*/                   LDG.E.CONSTANT R12, desc[UR4][R8.64] ;
	//## File "/a/k.py", line 4
        /*0090*/              @!P0 STL [R1], R12 ;
	.section	.debug_line,"",@progbits
        /*0030*/ 	.byte	0x92 ;
"""


@cuda.jit
def window(a, out):
    held = cuda.local.array(8, np.float32)
    i = cuda.grid(1)
    for j in range(8):
        held[j] = a[i + j]
    out[i] = held[i % 8]


@cuda.jit
def table(a, out):
    held = cuda.local.array(300, np.float32)
    i = cuda.grid(1)
    for j in range(300):
        held[(j * 7 + i) % 300] = a[i + j]
    out[i] = held[i % 300]


@cuda.jit
def sums_of_rows(starts, a, out):
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(starts[i], starts[i + 1]):
        total += a[k]
    out[i] = total


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the packages' `ptxas` and `nvdisasm` on the PATH."""
    folders = {tool.parent for tool in Path(sysconfig.get_path("purelib"), "nvidia").glob("*/bin/nvdisasm")}
    assert folders, "tests/requirements.txt has nvidia-cuda-nvdisasm"
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))


def launch(kernel):
    return kernel[8, 128].profile(np.ones(8192, np.float32), np.zeros(1024, np.float32))


def test_machine_code_is_read_by_line():
    code = sass_by_line(SASS)
    assert code == {
        ("/a/k.py", 4): ["LDC R1, c[0x0][0x28];", "@!P0 STL [R1], R12;"],
        ("/a/k.py", 8): ["LDG.E.CONSTANT R12, desc[UR4][R8.64];"],
    }


def test_without_the_tools_there_is_none(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = launch(window)
    assert found.sass == ""
    assert found.total("local", "sectors") > 0


@pytest.mark.usefixtures("tools")
def test_ptxas_runs_once_for_registers_and_machine_code(tmp_path: Path, monkeypatch):
    own, log = tmp_path / "ptxas", tmp_path / "log"
    own.write_text(f'#!/bin/sh\necho run >> {log}\nexec {shutil.which("ptxas")} "$@"\n')
    own.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    found = launch(window)
    assert found.occupancy is not None
    assert not found.occupancy.registers_are_estimated
    assert "LDG" in found.sass
    assert log.read_text() == "run\n"


@pytest.mark.usefixtures("tools")
def test_a_local_array_in_registers_is_not_accessed():
    found = launch(window)
    assert "LDG" in found.sass
    assert found.total("local", "sectors") == 0
    assert "local memory" not in [each.kind for each in found.findings]


@pytest.mark.usefixtures("tools")
def test_a_local_array_in_memory_is_accessed():
    found = launch(table)
    assert "LDL" in found.sass
    assert found.total("local", "sectors") > 0


@pytest.mark.usefixtures("tools")
def test_the_page_shows_machine_code_and_unrolled_loads():
    starts = np.arange(0, 8200, 8, dtype=np.int32)
    found = sums_of_rows[8, 128].profile(starts, np.ones(8192, np.float32), np.zeros(1024, np.float32))
    [line] = [line for line in found.lines if line.text.strip().startswith("total +=")]
    place = line.file, line.line
    ptx, sass = ptx_by_line(found.ptx)[place], sass_by_line(found.sass)[place]
    loads = sum("ld.global" in each for each in ptx), sum("LDG" in each for each in sass)
    assert loads[1] > loads[0] > 0
    [difference] = differences(line, ptx, sass)
    assert difference.startswith(f"{loads[0]} load of global memory in the PTX, {loads[1]} in the machine code")
    page = found.to_html()
    assert "Machine code:" in page
    assert "LDG.E" in page
    assert "sass" not in found.to_json()
