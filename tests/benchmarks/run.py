"""Runs every benchmark that the device allows, or those of ``--only``; ``./weft-dev bench`` calls it.

With ``--json FILE`` the figures are gathered in one file, for ``page.py`` to keep and to draw: for each program that
wrote figures the date, the machine and the figures themselves.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import machine

PROGRAMS = {
    "cpu": (
        ("kernels.py", "--cpu-check"),
        ("kernels.py", "--cpu-check", "--set", "second"),
        ("kernels.py", "--cpu-check", "--set", "fourth"),
        ("cpu.py",),
        ("arrays.py",),
        ("compile.py", "--no-launch"),
        ("cpu_saxpy.py",),
        ("cpu_warps.py",),
        ("operations.py",),
        ("reproducible.py",),
        ("import_time.py",),
    ),
    "cuda": (
        ("kernels.py",),
        ("kernels.py", "--restrict", "--set", "second"),
        ("kernels.py", "--restrict", "--set", "fourth"),
        ("automatic.py",),
        ("arrays.py",),
        ("operations.py",),
        ("reproducible.py",),
        ("coop.py",),
        ("coop_sorts.py",),
        ("compile.py",),
        ("launch.py",),
        ("memory.py",),
    ),
}


def called(name: str, *options: str) -> str:
    """The programs for a name of --only: a file, optionally followed by the set of kernels."""
    file = name.removesuffix(".py")
    return f"{file}-{options[options.index('--set') + 1]}" if "--set" in options else file


def chosen(device: str, only: str | None) -> list[tuple[str, ...]]:
    """The programs with their options; programs on the command line need not be on the device's list."""
    if not only:
        return list(PROGRAMS[device])
    every = {called(*program): program for program in (*sum(PROGRAMS.values(), ()), *PROGRAMS[device])}
    names = [name.strip().removesuffix(".py") for name in only.split(",")]
    if unknown := [name for name in names if name not in every]:
        raise SystemExit(f"--only: no benchmark {', '.join(map(repr, unknown))}; there are {', '.join(sorted(every))}")
    return [every[name] for name in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=tuple(PROGRAMS), help="the GPU if weft has one, else the CPU")
    parser.add_argument("--only", help="programs, with commas between: launch,memory,kernels")
    parser.add_argument("--json", type=Path, help="the file that gets the figures")
    options = parser.parse_args()
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.absolute().parent}")
    device = options.device or ("cuda" if machine.ask("cuda") else "cpu")
    if (facts := machine.ask(device)) is None:
        raise SystemExit(f"weft has no device {device!r} here: WEFT_DEVICE={device} python {machine.__file__} says why")
    gathered, failed = {}, []
    for name, *arguments in chosen(device, options.only):
        print(f"\n## {' '.join([name, *arguments])}\n", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(name)), *arguments]
        with tempfile.TemporaryDirectory() as folder:
            out = {"OUT": folder} if options.json else {}
            if subprocess.call(command, env=os.environ | {"WEFT_DEVICE": device} | out):
                failed.append(name)
            for figures in sorted(Path(folder).glob("*.json")):
                gathered[figures.stem] = {
                    "date": dt.date.today().isoformat(),
                    "machine": facts,
                    "figures": json.loads(figures.read_text(encoding="utf-8")),
                }
        if options.json:  # after each one, so that a later failure loses no figures
            options.json.write_text(json.dumps(gathered, indent=1) + "\n", encoding="utf-8")
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
