"""weft's types for type checkers and editors: kernels with their parameters, and every name that kernels use."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import weft
from weft import _weft, cuda

USES = Path(__file__).with_name("typed_uses.py")
PACKAGE = Path(weft.__file__).parent


def lines_of(output, pattern):
    """The lines of the uses that a checker rejects."""
    return sorted({int(found) for found in re.findall(pattern, output, re.MULTILINE)})


@pytest.fixture(scope="module")
def wrong():
    lines = [at for at, line in enumerate(USES.read_text().splitlines(), 1) if line.endswith("# wrong")]
    assert len(lines) > 20
    return lines


def test_mypy_finds_what_is_wrong_and_nothing_else(wrong, tmp_path):
    pytest.importorskip("mypy")
    options = ["--check-untyped-defs", "--no-incremental", "--config-file", "", "--cache-dir", str(tmp_path)]
    command = [sys.executable, "-m", "mypy", *options, str(USES)]
    environment = {"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert lines_of(done.stdout, rf"^.*{USES.name}:(\d+): error") == wrong, done.stdout + done.stderr


def test_pyright_finds_what_is_wrong_and_nothing_else(wrong, tmp_path):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("there is no pyright on the PATH")
    config = tmp_path / "pyrightconfig.json"
    (tmp_path / USES.name).write_text(USES.read_text())
    config.write_text(f'{{"extraPaths": ["{PACKAGE.parent}"], "reportUnusedExpression": false}}')
    command = [pyright, "--pythonpath", sys.executable, "-p", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert lines_of(done.stdout, rf"{USES.name}:(\d+):\d+ - error") == wrong, done.stdout + done.stderr


def test_the_options_of_jit_are_those_of_the_table():
    tree = ast.parse((PACKAGE / "_decorators.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found = [node.target.id for node in classes["Options"].body if isinstance(node, ast.AnnAssign)]
    known = [row[0] for row in _weft.jit_options()]
    assert sorted([*found, "device"]) == sorted({*known, "source"})


def test_the_stubs_of_kernel_names_have_no_other_names():
    stubs = {"libdevice": cuda.libdevice, "cg": cuda.cg, "coop/block": cuda.coop.block, "coop/warp": cuda.coop.warp}
    for file, module in stubs.items():
        tree = ast.parse((PACKAGE / "cuda" / f"{file}.pyi").read_text())
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert found == set(module.__all__), file


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (cuda, "syncthreads"),
        (cuda, "set_memory_manager"),
        (cuda.libdevice, "fadd_rz"),
        (cuda.cg, "this_grid"),
        (cuda.coop, "block"),
        (cuda.coop.block, "exclusive_sum"),
        (cuda.coop.warp, "reduce"),
        (cuda.random, "philox_uint32"),
        (cuda.random, "xoroshiro128p_type"),
        (cuda.atomic, "compare_and_swap"),
        (cuda.shared, "array"),
        (weft, "cuda"),
        (weft.config, "DEBUG"),
        (weft.errors, "NumbaTypeError"),
    ],
)
def test_completion_shows_names_that_are_made_when_they_are_used(owner, name):
    assert name in dir(owner)
    getattr(owner, name)


def test_help_of_a_name_says_what_it_does():
    assert "Waits for all threads of the block" in inspect.getdoc(cuda.syncthreads)
    assert "sine" in inspect.getdoc(cuda.libdevice.sincosf).lower()
