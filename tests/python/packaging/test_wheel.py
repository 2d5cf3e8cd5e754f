"""The release wheel: its size, exported symbols and dependencies, and that it works in a clean environment of each
Python.

`./weft-dev test` builds the wheel and names it in WEFT_WHEEL.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging import tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[3]
MAX_BYTES = 27_000_000
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
SMOKE = Path(__file__).with_name("smoke.py")


@pytest.fixture(scope="module")
def wheel() -> Path:
    if "WEFT_WHEEL" not in os.environ:
        pytest.skip("WEFT_WHEEL names no wheel; ./weft-dev test builds one")
    return Path(os.environ["WEFT_WHEEL"])


@pytest.fixture(scope="module")
def extension(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".so")]
        return Path(archive.extract(name, tmp_path_factory.mktemp("wheel")))


def output(*argv: object) -> str:
    """The standard output of a command that must succeed; a failure shows both streams."""
    result = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def interpreter(version: str) -> str:
    """A working python of this version; the test is skipped where there is none."""
    found = [shutil.which(f"python{version}")]
    found += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
    for candidate in filter(None, found):  # a pyenv shim is on the PATH even where it runs nothing
        probe = subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False)
        if probe.returncode == 0:
            return str(candidate)
    pytest.skip(f"no python{version} on this machine")


def test_size(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES


def test_there_is_no_bytecode_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith(".pyc")] == []


def test_the_wheel_is_not_for_free_threaded_pythons(wheel: Path) -> None:
    """The extension declares that it needs the GIL, and pip of a free-threaded Python does not accept the wheel."""
    assert "gil_used = true" in (ROOT / "pybindings" / "src" / "lib.rs").read_text()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        assert "Free Threading" not in archive.read(name).decode()
    _, _, _, taken = parse_wheel_filename(wheel.name)
    platforms = [tag.platform for tag in taken]
    for version in ((3, 13), (3, 14)):
        number = "".join(map(str, version))
        assert not taken.isdisjoint(tags.cpython_tags(version, [f"cp{number}"], platforms))
        assert taken.isdisjoint(tags.cpython_tags(version, [f"cp{number}t"], platforms))


def test_one_wheel_for_all_pythons(wheel: Path) -> None:
    assert "-cp311-abi3-manylinux_2_28_" in wheel.name


def test_licenses_are_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name).name for name in archive.namelist() if ".dist-info/licenses/" in name}
    assert names >= {"LICENSE-APACHE", "LICENSE-MIT", "third-party.md"}


def test_exports_only_its_init(extension: Path) -> None:
    symbols = [line.split()[-1] for line in output("nm", "--dynamic", "--defined-only", extension).splitlines()]
    assert symbols == ["PyInit__weft"]


def test_needs_only_the_c_library(extension: Path) -> None:
    dynamic = output("readelf", "--dynamic", "--wide", extension).splitlines()
    needed = {line.split("[")[1].rstrip("]") for line in dynamic if "(NEEDED)" in line}
    assert needed <= GLIBC


def test_old_enough_for_glibc_2_28(extension: Path) -> None:
    versions = re.findall(r"GLIBC_([\d.]+)", output("objdump", "--dynamic-syms", extension))
    assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 28)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_clean_environment(version: str, wheel: Path, tmp_path: Path) -> None:
    output(interpreter(version), "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    pins = ROOT / "tests" / "requirements.txt"
    output(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--constraint", pins, wheel)
    said = output("env", "-u", "PYTHONPATH", "WEFT_DEVICE=cpu", python, "-I", SMOKE)
    assert said.splitlines()[-1] == f"weft works on Python {version}"
    assert output(tmp_path / "venv" / "bin" / "weft", "--version").startswith("weft ")
