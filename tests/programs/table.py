"""Reads programs.toml, the table of programs from PyPI that use numba.cuda, and says what is wrong with it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKS = HERE / "checks"
RESULTS = HERE / "results"
FAULTS = ("weft", "program", "device", "needs")
"""The causes of failures: weft, the program or its archive, a missing device, a missing package."""


@dataclass
class Reason:
    """Why tests do not pass: those of which `tests` is found in the name, and `message` in what they say."""

    why: str
    fault: str
    tests: str = ""
    message: str = ""
    devices: list[str] = field(default_factory=lambda: ["cpu", "cuda"])


@dataclass
class Program:
    """A row of the table."""

    name: str
    version: str
    what: str
    needs: list[str]
    tests: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    check: bool = False
    elsewhere: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)

    @property
    def pinned(self) -> str:
        """The requirement that pip installs."""
        return f"{self.name}=={self.version}"

    def reason(self, device: str, test: str, message: str) -> Reason | None:
        """Why a test does not pass, if the table knows."""
        for reason in self.reasons:
            if device in reason.devices and re.search(reason.tests, test) and re.search(reason.message, message):
                return reason
        return None


def read(file: Path = HERE / "programs.toml") -> dict[str, Program]:
    """Give the programs by their names."""
    table = tomllib.loads(file.read_text())
    programs = {}
    for name, row in table["programs"].items():
        reasons = [Reason(**reason) for reason in row.pop("reasons", [])]
        needs = [table["common"].get(need, need) for need in row.pop("needs", [])]
        program = programs[name] = Program(name=name, needs=needs, reasons=reasons, **row)
        if unpinned := [need for need in needs if "==" not in need]:
            raise ValueError(f"{name}: {unpinned} have no version here, and none in [common]")
        if not (program.tests or program.check):
            raise ValueError(f"{name}: there is nothing to run: neither `tests` nor `check`")
        if program.check and not check_of(program).exists():
            raise ValueError(f"{name}: there is no {check_of(program)}")
        if wrong := [reason.fault for reason in reasons if reason.fault not in FAULTS]:
            raise ValueError(f"{name}: the fault is one of {FAULTS}, not {wrong}")
    return programs


def check_of(program: Program) -> Path:
    """The file of our own tests of a program."""
    return CHECKS / f"check_{program.name.replace('-', '_').lower()}.py"
