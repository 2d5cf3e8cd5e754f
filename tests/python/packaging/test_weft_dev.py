"""./weft-dev: the packages that it would install, when it rebuilds, and its response to a wrong command."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def weft_dev(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("weft_dev", str(ROOT / "weft-dev"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("weft_dev", loader))
    loader.exec_module(module)
    return module


def call(*argv):
    return subprocess.run([ROOT / "weft-dev", *argv], capture_output=True, text=True, check=False)


def test_nothing_is_missing_on_a_machine_that_has_all(weft_dev):
    assert weft_dev.missing_packages(lambda _: True, lambda _: "/usr/bin/it", has_venv=True) == []


def test_all_is_missing_on_a_bare_machine(weft_dev):
    missing = weft_dev.missing_packages(lambda _: False, lambda _: None, has_venv=False)
    assert missing == [*weft_dev.LLVM_PACKAGES, "gcc", "g++", "binutils", "python3-venv"]


def test_only_what_is_missing_is_named(weft_dev):
    has = {"llvm-22-dev", "libpolly-22-dev", "libzstd-dev", "zlib1g-dev"}
    assert weft_dev.missing_packages(has.__contains__, lambda _: "/usr/bin/it", has_venv=True) == ["libclc-22"]


def test_each_machine_tests_the_plans_of_the_others(weft_dev):
    avx2, avx512 = ["avx", "avx2"], ["avx", "avx2", "avx512f", "avx512bw", "avx512vl"]
    assert weft_dev.other_plans([]) == ["x86-64-v3", "x86-64-v4"]
    assert weft_dev.other_plans(avx2) == ["x86-64-v2", "x86-64-v4"]
    assert weft_dev.other_plans([*avx2, "avx512f"]) == ["x86-64-v2", "x86-64-v4"]
    assert weft_dev.other_plans(avx512) == ["x86-64-v2", "x86-64-v3"]
    assert len(weft_dev.other_plans()) == 2


@pytest.mark.parametrize("names", ["COARSENED", "INTERPRETED", "PLANNED"])
def test_each_conformance_test_that_is_named_exists(weft_dev, names):
    for name, file in zip(getattr(weft_dev, names), weft_dev.conformance_tests(getattr(weft_dev, names)), strict=True):
        assert file.name == f"test_{name}.py"


def test_missing_packages_are_installed_with_apt(weft_dev, monkeypatch):
    ran = []
    monkeypatch.setattr(weft_dev, "missing_packages", lambda: ["libclc-22"])
    monkeypatch.setattr(weft_dev.shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    monkeypatch.setattr(weft_dev.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(weft_dev, "run", lambda *argv: ran.append(argv))
    weft_dev.ensure_packages()
    assert [argv[0] for argv in ran] == ["sudo", "sudo"]
    assert ran[0][-1] == "update"
    assert ran[1][-1] == "libclc-22"


def test_without_apt_the_missing_packages_are_named(weft_dev, monkeypatch):
    monkeypatch.setattr(weft_dev, "missing_packages", lambda: ["libclc-22"])
    monkeypatch.setattr(weft_dev.shutil, "which", lambda name, **_: None if name == "apt-get" else name)
    with pytest.raises(weft_dev.Stop, match="libclc-22"):
        weft_dev.ensure_packages()


def test_a_package_that_was_removed_is_not_installed(weft_dev):
    assert not weft_dev.installed("no-such-package-of-weft")


def test_digest_sees_contents_and_names_but_no_build_products(weft_dev, monkeypatch, tmp_path):
    monkeypatch.setattr(weft_dev, "ROOT", tmp_path)
    source = tmp_path / "src" / "a.rs"
    source.parent.mkdir()
    source.write_text("1")
    first = weft_dev.digest("src")
    (tmp_path / "src" / "_weft.abi3.so").write_text("built")
    assert weft_dev.digest("src") == first
    source.write_text("2")
    second = weft_dev.digest("src")
    source.rename(tmp_path / "src" / "b.rs")
    assert len({first, second, weft_dev.digest("src")}) == 3


def test_alone_it_lists_its_commands(weft_dev):
    result = call()
    assert result.returncode == 0
    for name in weft_dev.COMMANDS:
        assert f"  {name} " in result.stdout


@pytest.mark.parametrize(
    ("argv", "message"), [(["nonsense"], "nonsense"), (["wheel", "now"], "no arguments"), (["docs", "now"], "not now")]
)
def test_a_wrong_call_is_named(argv, message):
    result = call(*argv)
    assert result.returncode == 2
    assert message in result.stderr


def test_conformance_says_what_is_missing(tmp_path):
    done = call("conformance", "--suite", str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path}/numba_suite.py" in done.stderr
    assert "--suite DIR or WEFT_NUMBA_SUITE" in done.stderr


@pytest.mark.parametrize(("changed", "expected"), [("", "1234567"), (" M README.md\n", "1234567 with changes")])
def test_the_commit_of_the_page(weft_dev, monkeypatch, changed, expected):
    answers = {"status": changed, "rev-parse": "1234567\n"}
    completed = subprocess.CompletedProcess
    monkeypatch.setattr(weft_dev.subprocess, "run", lambda argv, **_: completed(argv, 0, stdout=answers[argv[1]]))
    assert weft_dev.commit(besides=ROOT / "docs" / "numba-compatibility.md") == expected


@pytest.fixture
def commands(weft_dev, monkeypatch):
    """What `test` runs, in order: the last words of commands, with those of `meanwhile` in brackets."""
    ran = []

    def words(argv):
        return " ".join(map(str, argv)).replace(f"{ROOT}/", "")

    @contextlib.contextmanager
    def meanwhile(title, *argv, **_):
        ran.append(f"[{words(argv)}")
        yield
        ran.append(f"{words(argv)}]")

    for name in ("setup", "lint_steps", "build_extension"):
        monkeypatch.setattr(weft_dev, name, lambda **_: None)
    monkeypatch.setattr(weft_dev, "release_build", contextlib.nullcontext)
    monkeypatch.setattr(weft_dev, "build_wheel", lambda: Path("weft.whl"))
    monkeypatch.setattr(weft_dev, "missing_gpu", lambda: "none here")
    monkeypatch.setattr(weft_dev, "meanwhile", meanwhile)
    monkeypatch.setattr(weft_dev, "run", lambda *argv, **_: ran.append(words(argv)))
    return ran


def test_the_site_operators_and_the_wheel_are_tested_beside_the_kernels(weft_dev, commands):
    weft_dev.test()
    begun = [command[1:] for command in commands if command.startswith("[")]
    ends = ("docs --test", "operators", "--device cpu")
    assert all(command.endswith(end) for command, end in zip(begun, ends, strict=True))
    assert "tests/python/packaging" in begun[2]
    inside = commands[commands.index(f"[{begun[2]}") + 1 : commands.index(f"{begun[2]}]")]
    # All tests, coarsened by 2 factors, by 2 plans, by Python's interpreter, in the simulator.
    assert len(inside) == 1 + 2 + 2 + 1 + 1
    assert all(" pytest " in command for command in inside)
    assert commands[0] == "cargo test --locked --no-fail-fast"


def test_quick_tests_neither_the_site_nor_the_wheel(weft_dev, commands):
    weft_dev.test("--quick")
    assert len(commands) == 1 + 7
    assert not [command for command in commands if "docs" in command or "[" in command]
    assert "the site, the wheel and operators" in [title for title, _, _ in weft_dev.RESULTS]
