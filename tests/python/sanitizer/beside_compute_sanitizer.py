#!/usr/bin/env python3
"""Compares the planted faults that weft's sanitizer finds with those that NVIDIA's compute-sanitizer finds on a GPU.

    python tests/python/sanitizer/beside_compute_sanitizer.py --jobs 16
    python tests/python/sanitizer/beside_compute_sanitizer.py --only race --clean
    python tests/python/sanitizer/beside_compute_sanitizer.py --list

Each kernel of `planted_*.py` is compiled with `lineinfo=True`, and runs on the GPU in separate processes under
compute-sanitizer: first with the tool of the same name as weft's, then, if that reports nothing, with the three others.
A fault counts as found if any of them reports an error or a hazard. weft checks the same kernels on the CPU. `--clean`
also runs the kernels without faults.

The standard output gets tables in Markdown: one by kind of fault, with weft's names, and one by case. The exit code is
1 if weft does not find a planted fault, and 2 if compute-sanitizer does not work here. Cases that time out are
reported, but not counted.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

SELF = Path(__file__).resolve()
HERE = SELF.parent
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86
"""The exit code of compute-sanitizer where it reports an error."""
OPTIONS = {
    # Driver calls that return an error are not faults of a kernel.
    "memcheck": ["--report-api-errors", "no"],
    "racecheck": ["--racecheck-report", "all"],
    "initcheck": [],
    "synccheck": [],
}
LAUNCHED = "weft: launched"
PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


@dataclass
class Seen:
    """The report of a compute-sanitizer tool for a kernel."""

    tool: str
    outcome: str
    """`found`, `nothing`, `did not end`, `did not run` or `no time`"""
    lines: list[int] = field(default_factory=list)
    """Lines of the kernel's file that the report names."""
    text: str = ""
    seconds: float = 0.0


@dataclass
class Row:
    """A kernel, and the findings."""

    name: str
    tool: str | None
    kind: str
    """weft's name of the fault, or the tool that should have reported one."""
    lines: list[int]
    """Where the fault is."""
    found: list[int]
    """The lines that weft names."""
    seen: list[Seen] = field(default_factory=list)

    @property
    def by(self) -> list[Seen]:
        """The tools that report something."""
        return [seen for seen in self.seen if seen.outcome == "found"]

    @property
    def is_whole(self) -> bool:
        """Whether no tool timed out."""
        return bool(self.by) or (bool(self.seen) and all(seen.outcome != "no time" for seen in self.seen))


def all_cases(clean: bool) -> list[Any]:
    """The planted kernels, and the clean ones."""
    sys.path.insert(0, str(HERE))
    cases: ModuleType = importlib.import_module("cases")
    for path in sorted(HERE.glob("planted_*.py")) + (sorted(HERE.glob("clean_*.py")) if clean else []):
        importlib.import_module(path.stem)
    return [case for case in cases.CASES if clean or case.tool]


def launch(name: str) -> int:
    """Launch one kernel on the GPU: the program that compute-sanitizer runs."""
    import numpy as np
    from weft import cuda

    case = next(case for case in all_cases(clean=True) if case.name == name)
    kernel = cuda.jit(case.kernel.py_func, lineinfo=True)
    # One allocation per array, so that accesses past its end are found. Views stay in the memory of their array.
    args = [
        cuda.to_device(arg) if isinstance(arg, np.ndarray) and arg.flags.forc else arg for arg in case.args()
    ]  # fmt: skip
    print(LAUNCHED, flush=True)
    kernel[case.grid, case.block, 0, case.shared](*args)
    cuda.synchronize()
    return 0


def look(parts: list[str]) -> int:
    """Launch kernels on the CPU under weft's sanitizer, and print its findings as JSON."""
    from weft.errors import SanitizerError

    rows = []
    cases = all_cases(clean=True)
    control = next(case for case in cases if case.tool is None)
    for case in cases:
        if case is not control and not chosen(case, parts):
            continue
        found: list[Any] = []
        try:
            case.launch()
        except SanitizerError as error:
            found = error.findings
        lines = {access.line for finding in found for access in finding.accesses}
        tools = (case.tool or "").split(",")
        own = [finding.kind for finding in found if finding.tool in tools] or [case.tool or "nothing"]
        rows.append(
            {
                "name": case.name,
                "tool": case.tool,
                "kind": own[0],
                "lines": sorted(case.lines("# fault")),
                "found": sorted(lines),
            }
        )
    print(json.dumps(rows))
    return 0


def environment(device: str) -> dict[str, str]:
    """The environment of a process. Freed memory is not cached, since a cache would hide the ends of arrays."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    return env | {"WEFT_DEVICE": device, "WEFT_CACHE": "off", "WEFT_MEMORY_CACHE": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def run(argv: list[str], device: str, seconds: float) -> tuple[int | None, str]:
    """Run a process and its children with a time limit: the exit code, None if it timed out, and the output."""
    process = subprocess.Popen(
        argv,
        env=environment(device),
        cwd=HERE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            text, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired as expired:
            text = (expired.stdout or b"").decode(errors="replace") if isinstance(expired.stdout, bytes) else ""
        return None, text
    return process.returncode, text


class Beside:
    """compute-sanitizer and its time limit."""

    def __init__(self, program: str, seconds: float, budget: float) -> None:
        self.program, self.seconds = program, seconds
        self.end = time.monotonic() + budget

    def look(self, name: str, tool: str) -> Seen:
        """Run a kernel under a tool."""
        start = time.monotonic()
        if start + self.seconds > self.end:
            return Seen(tool, "no time")
        argv = [self.program, "--tool", tool, "--error-exitcode", str(FOUND), *OPTIONS[tool]]
        code, text = run([*argv, sys.executable, str(SELF), "--launch", name], "cuda", self.seconds)
        lines = sorted({int(line) for line in re.findall(r"(?:planted|clean)_\w+\.py:(\d+)", text)})
        # racecheck reports a hazard that it considers harmless as a warning, which has no exit code.
        reported = any(int(errors or hazards) for errors, hazards in SUMMARY.findall(text))
        if code == FOUND or reported:
            outcome = "found"
        elif code is None:
            outcome = "did not end"
        else:
            outcome = "nothing" if LAUNCHED in text and SUMMARY.search(text) else "did not run"
        return Seen(tool, outcome, lines, text[-4000:], time.monotonic() - start)

    def row(self, row: Row) -> Row:
        """Run a kernel under its tool, and under the others if that one reports nothing."""
        first = [row.tool] if row.tool else []
        for tool in [*first, *(tool for tool in TOOLS if tool not in first)]:
            row.seen.append(self.look(row.name, tool))
            if row.by and row.tool:
                break
        return row


def table(rows: list[Row]) -> list[str]:
    """The kinds of faults, and the number of them that each sanitizer finds."""
    lines = [
        "| tool | kind of fault | kernels | weft | compute-sanitizer | with the tool of this name | and names a line |",
        "|---|---|---|---|---|---|---|",
    ]
    kinds = Counter((row.tool or "", row.kind) for row in rows)
    for tool, kind in [*sorted(kinds), ("all", "")]:
        of = [row for row in rows if tool == "all" or (row.tool, row.kind) == (tool, kind)]
        told = [row for row in of if row.by]
        own = sum(seen.tool == row.tool for row in told for seen in row.by)
        at = sum(any(set(seen.lines) & set(row.lines) for seen in row.by) for row in told)
        weft = sum(set(row.lines) <= set(row.found) for row in of)
        lines.append(f"| {tool} | {kind} | {len(of)} | {weft} | {len(told)} | {own} | {at} |")
    return lines


def by_case(rows: list[Row]) -> list[str]:
    """A table with a row per kernel."""
    lines = ["| kernel | kind | weft names lines | compute-sanitizer |", "|---|---|---|---|"]
    for row in rows:
        says = []
        for seen in row.by or row.seen:
            at = f", lines {', '.join(map(str, seen.lines))}" if seen.lines and seen.outcome == "found" else ""
            says.append(f"{seen.tool}: {seen.outcome}{at}")
        found = ", ".join(map(str, row.found)) or "none"
        lines.append(f"| `{row.name}` | {row.tool or 'clean'}: {row.kind} | {found} | {'; '.join(says)} |")
    return lines


def program_of(asked: str | None) -> str | None:
    """The path of compute-sanitizer."""
    if asked:
        return shutil.which(asked)
    return shutil.which("compute-sanitizer") or next((place for place in PLACES if Path(place).is_file()), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitizer", metavar="PROGRAM", help="compute-sanitizer, if it is not on PATH")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=25, help="that a process may take")
    parser.add_argument("--budget", type=float, default=480, help="seconds for all of it: what does not fit is not run")
    parser.add_argument("--only", default="", help="kernels whose names or tools contain one of these, commas between")
    parser.add_argument("--clean", action="store_true", help="the kernels in which nothing is to be found, too")
    parser.add_argument("--json", type=Path, help="the file that gets everything, reports included")
    parser.add_argument("--list", action="store_true", help="print the kernels, and run none")
    parser.add_argument("--launch", metavar="KERNEL", help=argparse.SUPPRESS)
    parser.add_argument("--look", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        return launch(options.launch)
    parts = [part for part in options.only.split(",") if part]
    if options.look:
        return look(parts)
    program = program_of(options.sanitizer)
    if program is None and not options.list:
        print("there is no compute-sanitizer on PATH: say where it is with --sanitizer", file=sys.stderr)
        return 2

    code, text = run([sys.executable, str(SELF), "--look", "--only", options.only], "cpu", 300)
    if code != 0:
        print(f"weft's sanitizer ended with {code}:\n{text[-3000:]}", file=sys.stderr)
        return 2
    every = [Row(**row) for row in json.loads(text.splitlines()[-1])]
    rows = [row for row in every if (row.tool or options.clean) and chosen(row, parts)]
    if options.list:
        print(*(f"{row.tool or 'clean'}: {row.kind}: {row.name}" for row in rows), sep="\n")
        return 0
    beside = Beside(str(program), options.seconds, options.budget)
    with ThreadPoolExecutor(options.jobs) as pool:
        # The first processes may be slow: libraries are read from the disk.
        patient = Beside(str(program), 4 * options.seconds, float("inf"))
        control = next(row.name for row in every if row.tool is None)
        for seen in pool.map(lambda tool: patient.look(control, tool), TOOLS):
            if seen.outcome != "nothing":
                print(f"{seen.tool} of `{control}`, which has no fault: {seen.outcome}\n{seen.text}", file=sys.stderr)
            if seen.outcome not in ("nothing", "found"):
                return 2
        rows = list(pool.map(beside.row, sorted(rows, key=lambda row: row.tool is None)))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return tell([row for row in rows if row.tool], [row for row in rows if not row.tool])


def chosen(case: Any, parts: list[str]) -> bool:
    return not parts or any(part in case.name or part in (case.tool or "clean") for part in parts)


def tell(planted: list[Row], clean: list[Row]) -> int:
    """Print the tables; returns the exit code."""
    whole = [row for row in planted if row.is_whole]
    print(*table(whole), "", *by_case(whole), sep="\n")
    if clean:
        alarms = [row for row in clean if row.by]
        print(f"\n{len(alarms)} of {len(clean)} kernels without a fault are reported by compute-sanitizer, "
              f"{sum(bool(row.found) for row in clean)} by weft")  # fmt: skip
        print("", *by_case([row for row in clean if row.by or row.found]), sep="\n")
    outcomes = Counter(seen.outcome for row in planted + clean for seen in row.seen)
    print(f"\n{dict(outcomes)}")
    failed = [row for row in planted + clean if any(seen.outcome == "did not run" for seen in row.seen)]
    for row in failed[:10]:
        text = next(seen.text for seen in row.seen if seen.outcome == "did not run")
        print(f"`{row.name}` did not run:\n{text[-800:]}", file=sys.stderr)
    late = [row.name for row in planted if not row.is_whole]
    if late:
        print(f"no time for {len(late)} kernels: {', '.join(late)}")
    missed = [row.name for row in planted if not set(row.lines) <= set(row.found)]
    if missed:
        print(f"weft does not find {', '.join(missed)}")
    return 1 if missed or any(row.found for row in clean) else 0


if __name__ == "__main__":
    sys.exit(main())
