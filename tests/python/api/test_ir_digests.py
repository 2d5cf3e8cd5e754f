"""Digests of LLVM IR (`WEFT_IR_DIGESTS`), and how `tests/golden.py` compares them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu

PROGRAM = """
import numpy as np
from weft import cuda

@cuda.jit
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] OPERATOR factor

scale[2, 64](np.ones(100, np.float32), np.float32(3))
"""

spec = importlib.util.spec_from_file_location("golden", Path(__file__).resolve().parents[2] / "golden.py")
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)


def digests(folder, operator, *command):
    program, file = folder / "program.py", folder / "digests"
    file.unlink(missing_ok=True)
    program.write_text(PROGRAM.replace("OPERATOR", operator), encoding="utf-8")
    command = command or (sys.executable, str(program))
    env = os.environ | {"WEFT_DEVICE": "cpu", "WEFT_CACHE": "off", "WEFT_IR_DIGESTS": str(file)}
    subprocess.run(command, env=env, check=True, cwd=folder, capture_output=True)
    return golden.read(file)


def test_a_launch_appends_digests_for_each_target(tmp_path):
    first, again, other = digests(tmp_path, "*="), digests(tmp_path, "*="), digests(tmp_path, "+=")
    assert {target for _, _, target in first} == {
        "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver5", "sapphirerapids", "sm_75", "sm_90",
    }  # fmt: skip
    assert {location.partition("/")[2] for location, _, _ in first} == {"program.py:6"}
    assert all(len(digest) == 16 for found in first.values() for digest in found)
    assert golden.differences(first, again) == []
    assert len(golden.differences(first, other)) == len(first)


def test_the_command_appends_them_too(tmp_path):
    emit = (sys.executable, "-m", "weft", "emit", "--sig", "void(float32[::1], float32)", "program.py")
    found = digests(tmp_path, "*=", *emit)
    assert {kernel for _, kernel, _ in found} == {"scale(array(float32, 1d, C), float32)"}
    assert len(found) == 7


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("OPERATOR", "*="), encoding="utf-8")
    env = os.environ | {
        "WEFT_DEVICE": "cpu",
        "WEFT_CACHE": "off",
        "WEFT_IR_DIGESTS": str(tmp_path / "none" / "digests"),
    }
    ran = subprocess.run([sys.executable, str(program)], env=env, check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "WEFT_IR_DIGESTS: cannot write " in ran.stderr


def test_differences(tmp_path):
    before = {("f.py:1", "k()", "sm_75"): frozenset({"a", "b"}), ("f.py:2", "l()", "sm_75"): frozenset({"c"})}
    file = tmp_path / "digests"
    golden.write(file, before)
    assert golden.read(file) == before
    after = {("f.py:1", "k()", "sm_75"): frozenset({"a"}), ("f.py:3", "m()", "sm_75"): frozenset({"d"})}
    assert golden.differences(before, after) == [
        "differs: f.py:1 k() sm_75", "only before: f.py:2 l() sm_75", "only after: f.py:3 m() sm_75",
    ]  # fmt: skip
