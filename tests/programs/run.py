"""Runs the tests of programs from PyPI that use numba.cuda, by `python -m weft.numba`, and keeps what was found.

    python run.py [--device cpu|cuda] [--only NAMES] [--wheels DIR | --download DIR [--python X.Y]]

`./weft-dev programs` starts it in .venv. Each package that a program needs is installed into a folder of its own,
without what it would bring along, so that programs share them and each sees the versions of its row. The tests of a
program are those of its source archive, run in that; where it ships none, they are ours, in checks/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import table
from packaging import tags
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "programs"
SECONDS = 1800
"""A program's tests may take so long."""
UNUSED = "no test has used a device"
"""The line that plugin/drop_in.py prints."""


def pip(*args: object, may_fail: bool = False) -> bool:
    """Runs pip, and returns whether it succeeded; prints pip's output on a failure unless it may fail."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def wheel_of(pinned: str, wheels: Path, python: tuple[int, int] = sys.version_info[:2]) -> Path | None:
    """The wheel of a pinned package in a folder, of those that fit a version of Python."""
    name, version = pinned.split("==")
    fitting = {*tags.cpython_tags(python), *tags.compatible_tags(python)}
    for file in sorted(wheels.glob("*.whl")):
        its_name, its_version, _, its_tags = parse_wheel_filename(file.name)
        if (its_name, str(its_version)) == (canonicalize_name(name), version) and not fitting.isdisjoint(its_tags):
            return file
    return None


def archive_of(program: table.Program, wheels: Path) -> Path | None:
    """The source archive of a program in a folder."""
    name = re.sub(r"[-_.]+", "[-_.]+", program.name)
    pattern = re.compile(rf"{name}-{re.escape(program.version)}\.(tar\.gz|zip)", re.IGNORECASE)
    return next((file for file in sorted(wheels.iterdir()) if pattern.fullmatch(file.name)), None)


def fetch(program: table.Program, wheels: Path, python: tuple[int, int] = sys.version_info[:2]) -> None:
    """Downloads what a program needs that is not there: wheels, made where there is none, and its source archive."""
    wheels.mkdir(parents=True, exist_ok=True)
    version = f"--python-version={python[0]}.{python[1]}"
    for pinned in (program.pinned, *program.needs):
        if wheel_of(pinned, wheels, python) is not None:
            continue
        print(f"    fetching {pinned}", flush=True)
        download = ["download", "--quiet", "--no-deps", "--only-binary=:all:", version, "--dest", wheels, pinned]
        if not pip(*download, may_fail=True):
            # There is a source archive only. A wheel that is made of it has to be one for any Python.
            pip("wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, pinned)
        if wheel_of(pinned, wheels, python) is None:
            sys.exit(f"there is no wheel of {pinned} for Python {python[0]}.{python[1]}")
    if program.tests and archive_of(program, wheels) is None:
        only = f"--no-binary={program.name}"
        pip("download", "--quiet", "--no-deps", only, "--dest", wheels, program.pinned)


def installed(pinned: str, wheels: Path) -> Path:
    """Installs a package from a folder of wheels into a folder of its own, unless it is there, and gives that."""
    python = "python{}.{}".format(*sys.version_info)
    folder = WORK / python / pinned.replace("==", "-")
    if not (folder / ".done").exists():
        wheel = wheel_of(pinned, wheels)
        if wheel is None:
            way = f"fetch it with ./weft-dev programs --download {wheels}"
            sys.exit(f"there is no wheel of {pinned} in {wheels}: {way}")
        shutil.rmtree(folder, ignore_errors=True)
        pip("install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", folder, wheel)
        (folder / ".done").touch()
    return folder


def sources(program: table.Program, wheels: Path) -> Path:
    """Unpacks a program's source archive, unless that is done, and gives its folder."""
    folder = WORK / "sources" / f"{program.name}-{program.version}"
    if not folder.exists():
        archive = archive_of(program, wheels)
        if archive is None:
            sys.exit(f"the source archive of {program.pinned} is not in {wheels}: its tests are in that")
        unpacked = folder.with_suffix(".part")
        shutil.rmtree(unpacked, ignore_errors=True)
        if archive.suffix == ".zip":
            zipfile.ZipFile(archive).extractall(unpacked)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")
        (top,) = unpacked.iterdir()
        top.rename(folder)
        unpacked.rmdir()
    return folder


def run(program: table.Program, device: str, wheels: Path) -> dict[str, object]:
    """Runs a program's tests and gives what was found."""
    paths = [installed(pinned, wheels) for pinned in (program.pinned, *program.needs)]
    if program.tests:
        folder = sources(program, wheels)
        files = [folder / test for test in program.tests]
        if missing := [str(file) for file in files if not file.exists()]:
            sys.exit(f"{program.name}: these tests are not in its source archive: {missing}")
    else:
        folder = WORK / "empty" / program.name
        folder.mkdir(parents=True, exist_ok=True)
        files = []
    if program.check:
        files.append(table.check_of(program))
    report, log = WORK / f"{program.name}.{device}.xml", WORK / f"{program.name}.{device}.log"
    report.unlink(missing_ok=True)
    # Neither weft's settings of pytest nor the program's.
    ini = WORK / "pytest.ini"
    ini.write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTEST_"))}
    environment |= {
        "PYTHONPATH": os.pathsep.join(map(str, [table.HERE / "plugin", *paths])),
        "WEFT_DEVICE": device,
        "MPLBACKEND": "agg",
        # Code that numba compiles for the host of a program is cached with the program.
        "NUMBA_CACHE_DIR": str(WORK / "numba-cache"),
        **program.environment,
    }
    command = [sys.executable, "-m", "weft.numba", "-m", "pytest", "-q", "-c", ini, "--rootdir", folder]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "drop_in", "--timeout", 600, "--tb", "short"]
    left_out = program.slow if device == "cpu" else []
    command += [f"--junitxml={report}", *(f"--deselect={test}" for test in left_out), *files]
    with log.open("w") as output:
        try:
            subprocess.run(
                [*map(str, command)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {
                "version": program.version,
                "passed": 0,
                "others": {},
                "stopped": f"its tests took more than {SECONDS} s",
            }
    if not report.exists():
        last = log.read_text().strip().splitlines()[-1:]
        return {
            "version": program.version,
            "passed": 0,
            "others": {},
            "stopped": f"pytest ended without a report: {last}",
        }
    if UNUSED in log.read_text() and not program.elsewhere:
        return {"version": program.version, "passed": 0, "others": {}, "stopped": UNUSED}
    tests = dict(read_report(report, folder))
    others = {name: found for name, found in tests.items() if found[0] != "passed"}
    return {"version": program.version, "passed": len(tests) - len(others), "others": others}


def read_report(report: Path, folder: Path):
    """Gives each test's name and what became of it: a state, and a message unless it has passed."""
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}".removeprefix("::")
        state, message = "passed", ""
        for kind, found in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
            node = case.find(kind)
            if node is not None:
                state = found
                lines = [line for line in (node.text or "").splitlines() if line.strip()]
                message = (node.get("message") or "").strip()
                # Errors raised while tests were collected are in the last line of the text.
                if lines and message in ("", "collection failure"):
                    message = lines[-1].removeprefix("E").strip()
                break
        text = message.replace(str(folder), "").replace(str(ROOT), "")
        # Addresses are others each time.
        yield name, [state, re.sub(r"0x[0-9a-f]{6,}", "0x…", text)[:300]]


def version(text: str) -> tuple[int, int]:
    """Reads `3.12`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def main() -> None:
    """Fetches, installs and runs; keeps what was found in results/."""
    parser = argparse.ArgumentParser(prog="weft-dev programs", description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="take packages from this folder, and none from PyPI")
    parser.add_argument("--download", type=Path, metavar="DIR", help="only download what is needed into this folder")
    parser.add_argument(
        "--python", type=version, metavar="X.Y", help="download for this Python, not for the present one"
    )
    options = parser.parse_args()
    programs = table.read()
    names = [name for name in options.only.split(",") if name] or list(programs)
    if unknown := [name for name in names if name not in programs]:
        parser.error(f"there are no programs {unknown}: they are {', '.join(programs)}")
    wheels = options.wheels or options.download or WORK / "wheels"
    if options.python and not options.download:
        parser.error("--python says for what to download: it needs --download")
    if options.wheels and not wheels.is_dir():
        parser.error(f"--wheels {wheels} is no folder")
    if not options.wheels:
        for name in names:
            fetch(programs[name], wheels.resolve(), options.python or sys.version_info[:2])
    if options.download:
        print(f"what {len(names)} programs need is in {wheels}")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    file = table.RESULTS / f"{options.device}.json"
    file.parent.mkdir(exist_ok=True)
    for name in names:
        result = run(programs[name], options.device, wheels.resolve())
        states = [state for state, _ in result["others"].values()]
        counts = {state: states.count(state) for state in ("failed", "error", "skipped")}
        said = result.get("stopped", f"{result['passed']} passed, {counts}")
        print(f"{name} {programs[name].version}: {said}", flush=True)
        # Saved after each, so that the results are available if a later one is interrupted.
        known = json.loads(file.read_text())["programs"] if file.exists() else {}
        known[name] = result
        found = {
            "python": platform.python_version(),
            "programs": {name: known[name] for name in programs if name in known},
        }
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
