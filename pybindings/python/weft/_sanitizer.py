"""Reporting of the sanitizer's findings: an exception, a warning, or an item of the list of `weft sanitize`.

The processes that a program starts write theirs to a folder, from which `weft sanitize` reads them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

from weft._program import run_program
from weft.errors import SanitizerError, SanitizerWarning
from weft.sanitize import Access, Call, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

# The kinds of races, in order of severity.
RACES = ("benign race", "race within a warp", "race within a block", "race between blocks")

# The process that collects findings in place of exceptions, and its list. A fork has a copy that is never read.
_COLLECTED: tuple[int, list[Finding]] | None = None


def report(found: list[tuple[Any, ...]], raises: bool, folder: Path | None) -> SanitizerError | None:
    """Take the findings of a launch; gives the exception that it raises. A folder is for findings of all processes."""
    findings = [_finding(*one) for one in found]
    if _COLLECTED is not None and _COLLECTED[0] == os.getpid():
        _COLLECTED[1].extend(findings)
        return None
    if folder is not None and _written(findings, folder):
        return None
    message = "\n\n".join(["the sanitizer found:", *map(shown, findings)])
    if raises:
        return SanitizerError(message, findings)
    warnings.warn(message, SanitizerWarning, stacklevel=2)
    return None


def _finding(
    tool: str, kind: str, kernel: str, message: str, help: str, count: int, places: list[tuple[Any, ...]]
) -> Finding:
    accesses = []
    for (file, line, column, width, text, function), what, array, index, thread, block, calls in places:
        function = _in_source(function)
        chain = tuple(_call(*call) for call in calls)
        accesses.append(Access(file, line, column, what, array, index, thread, block, width, text, function, chain))
    return Finding(tool, kind, kernel, message, count, accesses, help)


def _call(file: str, line: int, column: int, width: int, text: str, function: str) -> Call:
    return Call(file, line, column, width, text, _in_source(function))


def _in_source(function: str) -> str:
    """Give what the source calls a function, of which there may be several specializations."""
    name, dot, number = function.partition("$")[0].rpartition(".")
    return name if dot and number.isdigit() else function.partition("$")[0]


@contextlib.contextmanager
def collected() -> Iterator[list[Finding]]:
    """Collect the findings of launches of this process, which then raise nothing."""
    global _COLLECTED
    findings: list[Finding] = []
    before, _COLLECTED = _COLLECTED, (os.getpid(), findings)
    try:
        yield findings
    finally:
        _COLLECTED = before


def _written(findings: list[Finding], folder: Path) -> bool:
    """Append findings to the file of this process in a folder; False if that cannot be."""
    lines = "".join(json.dumps(finding.as_dict()) + "\n" for finding in findings)
    try:
        with (Path(folder) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(lines)
    except OSError:
        # `weft sanitize` has ended before this process.
        return False
    return True


def _of_processes(folder: Path) -> list[Finding]:
    """Give the findings that processes have written to a folder."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: int(file.stem))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [_from_dict(json.loads(line)) for line in lines]


def _from_dict(finding: dict[str, Any]) -> Finding:
    def access(one: dict[str, Any]) -> Access:
        calls = tuple(Call(**call) for call in one["calls"])
        index = None if one["index"] is None else tuple(one["index"])
        return Access(
            **one | {"calls": calls, "index": index, "thread": tuple(one["thread"]), "block": tuple(one["block"])}
        )

    return Finding(**finding | {"accesses": [access(one) for one in finding["accesses"]]})


def shown(finding: Finding) -> str:
    """Give a finding as weft shows errors: the lines, with what is done there underlined."""
    lines = [f"error[{finding.tool}]: {finding.message}"]
    gutter = max((len(str(access.line)) for access in finding.accesses), default=1)
    for index, access in enumerate(finding.accesses):
        arrow = "-->" if index == 0 else ":::"
        lines.append(f"{'':{gutter}}{arrow} {access.file}:{access.line}:{access.column}")
        who = f"thread {access.thread} of block {access.block}"
        mark = "^" if index == 0 else "-"
        column, width = max(access.column, 1), max(access.width, 1)
        width = min(width, max(len(access.text) - column + 1, 1))
        lines.append(f"{'':{gutter}} |")
        lines.append(f"{access.line:>{gutter}} | {access.text}")
        lines.append(f"{'':{gutter}} | {'':{column - 1}}{mark * width} {access.what} by {who}")
        lines.extend(f"{'':{gutter}} | {_called(call)}" for call in access.calls)
    lines.append(f"{'':{gutter}} |")
    if finding.help:
        lines.append(f"{'':{gutter}} = help: {finding.help}")
    times = "once" if finding.count == 1 else f"{finding.count} times"
    lines.append(f"{'':{gutter}} = note: {finding.kind} in `{finding.kernel}`, seen {times}")
    return "\n".join(lines)


def _called(call: Call) -> str:
    return f"called in `{call.function}` at {call.file}:{call.line}:{call.column}: {call.text.strip()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weft sanitize",
        description="Run a Python program with its kernels on the CPU, and print the errors that the sanitizer finds.",
        epilog="Exits with 1 if the sanitizer found an error, else with the program's exit code.",
    )
    parser.add_argument("--tool", default="all", metavar="TOOLS", help=f"all, or some of {','.join(TOOLS)}")
    parser.add_argument("--json", action="store_true", help="print the findings as a JSON array to the standard output")
    parser.add_argument(
        "--ignore-benign-races",
        action="store_true",
        help="do not report races in which threads write the same value",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("program", help="a Python file, or with -m a module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def run(argv: list[str]) -> int:
    """Run a program under the sanitizer, print what was found, and give the exit code."""
    options = _parser().parse_args(argv)
    unknown = [tool for tool in options.tool.split(",") if tool.strip() not in (*TOOLS, "all")]
    if unknown:
        print(f"weft sanitize: there is no tool {unknown[0]!r}: {', '.join(TOOLS)} or all", file=sys.stderr)
        return 2
    if not options.module and not Path(options.program).is_file():
        print(f"weft sanitize: there is no file {options.program}", file=sys.stderr)
        return 2
    # The program's first use of a device reads these settings.
    os.environ["WEFT_SANITIZE"] = options.tool
    os.environ["WEFT_DEVICE"] = "cpu"
    if options.ignore_benign_races:
        os.environ["WEFT_SANITIZE_BENIGN_RACES"] = "ignore"
    # For child processes of the program.
    folder, process = tempfile.mkdtemp(prefix="weft-sanitize-"), os.getpid()
    os.environ["WEFT_SANITIZE_REPORT"] = folder
    with collected() as findings:
        code = run_program(options.program, options.args, options.module)
    if os.getpid() != process:
        # A fork of the program: the parent process reports.
        return code
    findings = _merged(findings + _of_processes(Path(folder)))
    shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps([finding.as_dict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(shown(finding), end="\n\n", file=sys.stderr)
    count = len(findings)
    what = {0: "nothing", 1: "1 fault"}.get(count, f"{count} faults")
    print(f"weft sanitize: {what} found", file=sys.stderr)
    return 1 if findings else code


def _merged(findings: list[Finding]) -> list[Finding]:
    """Make one of those that several launches have found on the same lines."""
    merged: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        places = tuple(sorted({(access.file, access.line) for access in finding.accesses}))
        # Races on the same lines are one finding, with the most severe kind.
        kind = "" if finding.kind in RACES else finding.kind
        key = (finding.tool, kind, finding.kernel, places)
        known = merged.get(key)
        if known is not None:
            worst = max(known, finding, key=lambda one: RACES.index(one.kind) if one.kind in RACES else 0)
            finding = replace(worst, count=known.count + finding.count)
        merged[key] = finding
    return list(merged.values())
