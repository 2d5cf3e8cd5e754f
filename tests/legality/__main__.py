#!/usr/bin/env python3
"""Shows that the legality conditions of the CPU planner are needed: without one, a test fails.

    python tests/legality                         # runs the test of each condition without the condition
    python tests/legality --only merge_blocks     # for the conditions whose names contain one of these words
    python tests/legality --log rejected.tsv      # runs the CPU tests; writes which conditions do not hold in which
    python tests/legality --find rejected.tsv     # for conditions without a test, tries these tests

`conditions.txt` has a row for each `legal!` of `compiler/src/backend/host/plan/`: its name, what it protects, and the
test, or `open`. A test is a node of pytest, with the planned CPU after ` @` if only its plans show the fault, or a test
of weft-compiler. The extension and the tests must be debug builds (`./weft-dev build --debug`): only those read
`WEFT_DROP_CONDITION` and `WEFT_LOG_CONDITIONS`. The last lines count the conditions whose test fails, as it must, and
those whose test passes; the program exits with 1 if there are any of the latter.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = HERE / "conditions.txt"
SUITES = [f"tests/python/conformance/{name}" for name in ("cpu", "threads", "memory", "collectives", "language")]
PLANS = ("", "x86-64-v3")
SECONDS = 120
MOST_TESTS = 40


@dataclass(frozen=True)
class Condition:
    """A row of the table."""

    name: str
    protects: str
    test: str
    """A test, or `open`."""


@dataclass(frozen=True)
class Outcome:
    """The end of a run of tests."""

    failed: str
    """The test that failed; empty if all passed."""
    why: str


def table() -> list[Condition]:
    """The rows of the table."""
    rows = [line.split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [Condition(*map(str.strip, row)) for row in rows]


def environment(**more: str) -> dict[str, str]:
    """The variables of a run. Cached code would hide what a dropped condition changes."""
    return os.environ | {"WEFT_CACHE": "off", "WEFT_CPU_THREADS": "2"} | {name: at for name, at in more.items() if at}


def pytest(tests: list[str], plan: str, *flags: str, limit: int | None = SECONDS, **more: str) -> Outcome:
    """Runs nodes of pytest on the CPU."""
    flags = ("-q", "--device", "cpu", "--tb=line", "-p", "no:cacheprovider", *flags)
    command = [sys.executable, "-m", "pytest", *flags, *tests]
    return run(command, tests, environment(WEFT_HOST_PLAN=plan, **more), limit)


def cargo(tests: list[str], limit: int | None = SECONDS, **more: str) -> Outcome:
    """Runs tests of weft-compiler."""
    command = ["cargo", "test", "-q", "-p", "weft-compiler", "--lib", "--", *tests]
    return run(command, tests, environment(**more), limit)


def run(command: list[str], tests: list[str], variables: dict[str, str], limit: int | None) -> Outcome:
    """Runs tests. A crash, or no end within some seconds, counts as the failure of the first test."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return Outcome(tests[0], "does not end")
    if done.returncode == 0:
        return Outcome("", "")
    text = done.stdout + done.stderr
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", text, re.M)
    found = found or re.search(r"^---- (\S+) stdout ----\n(?:.*\n)??.*panicked at .*\n(.*)", text, re.M)
    if found:
        return Outcome(found[1], found[2] or "")
    return Outcome(tests[0], f"exit code {done.returncode}: {text.strip().splitlines()[-1] if text.strip() else ''}")


def run_without(name: str, test: str) -> Outcome:
    """Runs one test without a condition."""
    if ".py::" not in test:
        return cargo(["--exact", test], WEFT_DROP_CONDITION=name)
    node, _, plan = test.partition(" @")
    return pytest([node], plan, "-x", WEFT_DROP_CONDITION=name)


def check(conditions: list[Condition]) -> int:
    """Runs each test without its condition. Returns the number of tests that pass."""
    passed = [row for row in conditions if row.test != "open" and not report(row.name, row.test)]
    left = [row.name for row in conditions if row.test == "open"]
    print(f"{len(conditions) - len(left) - len(passed)} conditions are needed by their tests")
    print(f"{len(passed)} tests pass without their conditions: {' '.join(row.name for row in passed)}")
    print(f"{len(left)} conditions have no test: {' '.join(left)}")
    return len(passed)


def report(name: str, test: str) -> bool:
    """Prints how a test ends without a condition. Returns whether it fails."""
    outcome = run_without(name, test)
    print(f"{name}\t{outcome.failed or 'PASSES'}\t{outcome.why[:120]}", flush=True)
    return bool(outcome.failed)


def log(path: Path) -> None:
    """Runs the CPU tests, and writes in which tests each condition does not hold."""
    path.unlink(missing_ok=True)
    for plan in PLANS:
        # LLVM's optimizations do not change weft's plans.
        outcome = pytest(SUITES, plan, limit=None, WEFT_LOG_CONDITIONS=str(path), WEFT_HOST_OPT_LEVEL="0")
        print(f"{plan or 'the CPU of this machine'}: {outcome.failed or 'all tests pass'}", flush=True)
    cargo(["backend::host"], limit=None, WEFT_LOG_CONDITIONS=str(path))


def find(conditions: list[Condition], path: Path) -> None:
    """For conditions without a test, prints the first test of a log that fails without the condition."""
    tests: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, test = line.partition("\t")
        tests.setdefault(name, []).append(re.sub(r" \((call|setup|teardown)\)$", "", test))
    for row in conditions:
        if row.test != "open":
            continue
        candidates = list(dict.fromkeys(tests.get(row.name, [])))
        nodes = [test for test in candidates if ".py::" in test]
        # One of each function comes first.
        firsts = list({test.partition("[")[0]: test for test in reversed(nodes)}.values())[::-1]
        nodes = [*firsts, *(test for test in nodes if test not in firsts)][:MOST_TESTS]
        outcomes = (pytest(nodes, plan, "-x", WEFT_DROP_CONDITION=row.name) for plan in PLANS if nodes)
        outcome = next((outcome for outcome in outcomes if outcome.failed), None)
        if outcome is None and "" in candidates:
            outcome = cargo(["backend::host"], WEFT_DROP_CONDITION=row.name)
        found = outcome.failed if outcome and outcome.failed else f"none of {len(candidates)} tests fails"
        print(f"{row.name}\t{found}\t{outcome.why[:120] if outcome else ''}", flush=True)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="legality", description="shows that legality conditions are needed")
    parser.add_argument("--only", default="", help="words of the names of conditions, separated by commas")
    parser.add_argument("--log", metavar="FILE", type=Path, help="write in which tests each condition does not hold")
    parser.add_argument("--find", metavar="FILE", type=Path, help="search this log for tests of open conditions")
    asked = parser.parse_args()
    words = asked.only.split(",")
    conditions = [row for row in table() if any(word in row.name for word in words)]
    if asked.log:
        log(asked.log.resolve())
        return 0
    if asked.find:
        find(conditions, asked.find.resolve())
        return 0
    return 1 if check(conditions) else 0


if __name__ == "__main__":
    sys.exit(main())
