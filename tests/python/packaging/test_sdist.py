"""The source archive has all files that a build needs. A build takes minutes, so cargo only lists the archive's
files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import weft

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    maturin = Path(sys.executable).with_name("maturin")
    command = [maturin, "sdist", "-m", "pybindings/Cargo.toml", "--out", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_every_source_is_inside(unpacked: Path) -> None:
    tracked = ["git", "ls-files", "compiler", "runtime", "pybindings/src", "pybindings/python", "Cargo.lock"]
    done = subprocess.run(tracked, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no repository of git")
    inside = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    names = [name.removeprefix("pybindings/") if "/python/" in name else name for name in done.stdout.split()]
    assert len(names) > 500
    assert [name for name in names if name not in inside] == []


def test_cargo_knows_all_crates_of_it(unpacked: Path) -> None:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--no-deps"]
    cargo = {"PATH": os.pathsep.join([os.environ["PATH"], str(Path.home() / ".cargo" / "bin")])}
    done = subprocess.run(
        command, cwd=unpacked, env=os.environ | cargo, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    crates = {package["name"] for package in json.loads(done.stdout)["packages"]}
    names = ("artifact", "compiler", "cli", "engine", "export", "runtime", "ffi", "simulator", "python")
    assert crates == {f"weft-{name}" for name in names}


def test_it_says_what_it_is(unpacked: Path) -> None:
    said = (unpacked / "PKG-INFO").read_text()
    assert f"\nVersion: {weft.__version__}\n" in said
    assert "Keywords: cuda," in said
    assert "Programming Language :: Python :: 3.14" in said
    assert "\n# weft\n" in said
    assert "](docs/" not in said
