#!/usr/bin/env python3
"""Mutation test of the sanitizer: deletes one barrier, fence, guard or initialization, and checks that it is found.

    python tests/python/sanitizer/mutation.py                     # all of it
    python tests/python/sanitizer/mutation.py --only suite,04_    # mutants whose names contain one of these
    python tests/python/sanitizer/mutation.py --list              # the mutants, without running them

From the kernels of examples/, tests/python/acceptance/ and tests/benchmarks/ (at their tiny sizes) it deletes, one at a
time, each barrier, fence and `syncwarp`, a bit of each lane mask, each guard (a condition that compares with an extent,
as `if i < n:`) and each initialization of an element of a shared or local array by a constant. Every mutant runs in a
separate process, under the sanitizer on the CPU; in test files, only the tests that use the kernel. A mutant that is
not found is explained in `mutation_known.py`, or listed as unexplained: the program then exits with 1.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SECONDS = 900
ABSENT = "not run: "
BARRIERS = {"syncthreads", "sync", "syncthreads_and", "syncthreads_or", "syncthreads_count"}
FENCES = {"threadfence", "threadfence_block", "threadfence_system"}
MARKS = ("threadIdx", "grid", "laneid", "syncthreads", "this_grid", "blockIdx", "gridsize")


@dataclass(frozen=True)
class Mutant:
    """A file of the project with one change."""

    path: Path
    line: int
    kind: str
    """barrier, fence, syncwarp, mask, guard or initialization"""
    text: str
    """The line as it was."""
    before: str
    """The line before it."""
    source: str
    """The whole file as it is now."""

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.kind}: {self.text}"


def is_kernel(node: ast.AST) -> bool:
    """Whether a function seems to be device code."""
    return any(isinstance(each, ast.Attribute) and each.attr in MARKS for each in ast.walk(node))


def called(node: ast.AST) -> str:
    """The last part of the name of the function that a statement calls; empty for any other statement."""
    call = node.value if isinstance(node, ast.Expr) else None
    return call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""


def leaves_only(block: list[ast.stmt]) -> bool:
    return len(block) == 1 and isinstance(block[0], ast.Return) and block[0].value is None


def constant(node: ast.expr) -> bool:
    """A number, such as `0`, `-1.0`, `np.float32(0)`, `np.inf` or a name in capitals."""
    if isinstance(node, ast.Call):
        return len(node.args) == 1 and not node.keywords and constant(node.args[0]) and "shared" not in ast.dump(node)
    if isinstance(node, ast.UnaryOp):
        return constant(node.operand)
    is_name = isinstance(node, ast.Name) and node.id.isupper()
    return is_name or isinstance(node, ast.Constant) or (isinstance(node, ast.Attribute) and node.attr == "inf")


EXTENTS = {"n", "size", "width", "height", "depth", "half", "step", "d", "LENGTH"}


def is_extent(node: ast.AST) -> bool:
    """`x.size`, `x.shape[0]`, `len(x)`, or a name that kernels use for an extent."""
    is_len = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
    is_name = isinstance(node, ast.Name) and node.id in EXTENTS
    return is_len or is_name or (isinstance(node, ast.Attribute) and node.attr in ("shape", "size"))


def compares(node: ast.expr) -> bool:
    """`i < n`, `0 < i < n - 1`, `i < n and j < m`: only order comparisons with an extent."""
    if isinstance(node, ast.BoolOp):
        return all(map(ordered, node.values)) and any(map(compares, node.values))
    return ordered(node) and any(map(is_extent, ast.walk(node)))


def ordered(node: ast.expr) -> bool:
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    return isinstance(node, ast.Compare) and all(isinstance(op, orders) for op in node.ops)


def own_arrays(function: ast.FunctionDef) -> set[str]:
    """The names of a kernel's shared and local arrays."""
    made = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and is_array(node.value)]
    return {target.id for node in made for target in node.targets if isinstance(target, ast.Name)}


def is_array(node: ast.expr) -> bool:
    call = node.func if isinstance(node, ast.Call) else None
    return isinstance(call, ast.Attribute) and call.attr == "array" and "cuda" in ast.dump(call)


class Cut:
    """All mutations of a file: ranges and their replacements."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line.encode()))
        self.mutants: list[Mutant] = []
        self.seen: set[int] = set()

    def all(self) -> list[Mutant]:
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.FunctionDef) and id(node) not in self.seen and is_kernel(node):
                self.function(node)
        return sorted(self.mutants, key=lambda mutant: (mutant.line, mutant.kind))

    def function(self, function: ast.FunctionDef) -> None:
        inner = [each for each in ast.walk(function) if isinstance(each, ast.FunctionDef) and each is not function]
        if any(map(is_kernel, inner)):
            return  # a factory: its kernel is mutated next
        arrays = own_arrays(function)
        for node in ast.walk(function):
            self.seen.add(id(node))
            if isinstance(node, ast.Expr):
                self.statement(node)
            elif isinstance(node, ast.If):
                self.guard(node)
            elif isinstance(node, ast.Assign):
                self.initialization(node, arrays)
            if isinstance(node, ast.Call):
                self.mask(node)

    def statement(self, node: ast.Expr) -> None:
        name = called(node)
        if name in BARRIERS:
            self.add(node, "barrier", "pass")
        elif name in FENCES:
            self.add(node, "fence", "pass")
        elif name == "syncwarp":
            self.add(node, "syncwarp", "pass")

    def initialization(self, node: ast.Assign, arrays: set[str]) -> None:
        target = node.targets[0]
        of = target.value if isinstance(target, ast.Subscript) else None
        if isinstance(of, ast.Name) and of.id in arrays and constant(node.value):
            self.add(node, "initialization", "pass")

    def guard(self, node: ast.If) -> None:
        if node.orelse or not compares(node.test):
            return
        self.add(node.test, "guard", "False" if leaves_only(node.body) else "True")

    def mask(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if (name.endswith("_sync") or name == "syncwarp") and node.args:
            old = ast.get_source_segment(self.text, node.args[0])
            self.add(node.args[0], "mask", f"(({old}) & ~2)")

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def add(self, node: ast.AST, kind: str, new: str) -> None:
        start, end = self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)
        data = self.text.encode()
        source = (data[:start] + new.encode() + data[end:]).decode()
        line = self.lines[node.lineno - 1].strip()
        before = self.lines[node.lineno - 2].strip()
        self.mutants.append(Mutant(self.path, node.lineno, kind, line, before, source))


BENCHMARK = """
import sys, json, importlib
sys.path.insert(0, sys.argv[1])
from weft import cuda
from weft._sanitizer import collected
module = importlib.import_module(sys.argv[2])
with collected() as found:
    for case in module.CASES:
        work = case.work("tiny")
        for make in (case.make, case.narrow):
            try:
                if make is not None:
                    make(cuda)[work.grid, work.block](*work.args)
            except Exception as error:
                print(f"{case.name}: {error}", file=sys.stderr)
print(json.dumps([[finding.tool, finding.kind] for finding in found]))
"""


def command(mutant: Mutant, folder: Path) -> list[str]:
    """Writes the mutant to a folder; returns the command that runs it."""
    relative = mutant.path.relative_to(ROOT)
    if relative.parts[:2] == ("tests", "benchmarks"):
        shutil.copytree(ROOT / "tests" / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("*.pyc"))
        within = relative.relative_to("tests/benchmarks")
        (folder / "benchmarks" / within).write_text(mutant.source, encoding="utf-8")
        module = ".".join(within.with_suffix("").parts)
        return [sys.executable, "-c", BENCHMARK, str(folder / "benchmarks"), module]
    if relative.parts[0] == "examples":
        file = folder / mutant.path.name
        file.write_text(mutant.source, encoding="utf-8")
        return [sys.executable, "-m", "weft.sanitize", str(file)]
    tests = folder / "tests" / "python"
    shutil.copytree(ROOT / "tests" / "python" / "acceptance", tests / "acceptance")
    for name in ("conftest.py", "harness.py", "oracle"):
        source = ROOT / "tests" / "python" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tests / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    file = tests / "acceptance" / mutant.path.name
    file.write_text(mutant.source, encoding="utf-8")
    chosen = [f"{file}::{name}" for name in tests_of(mutant)] or [str(file)]
    (tests / "sanitizer").mkdir()
    shutil.copy(HERE / "expected.py", tests / "sanitizer")
    options = ["-q", "-x", "-p", "no:cacheprovider", "--weft-sanitize", "--device", "cpu", *chosen]
    return [sys.executable, "-m", "pytest", *options]


def tests_of(mutant: Mutant) -> list[str]:
    """The tests of a file that use the mutated function by name, directly or through another function."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = {node.name for node in defined if node.lineno <= mutant.line <= (node.end_lineno or 0)}
    while True:
        users = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and names & named(node)}
        tables = [node for node in tree.body if isinstance(node, ast.Assign) and names & named(node)]
        users |= {name for node in tables for name in stored(node)}
        if users <= names:
            return [node.name for node in defined if node.name in names and node.name.startswith("test_")]
        names |= users


def named(node: ast.AST) -> set[str]:
    """The names in a piece of code, including parameters, since those may be fixtures."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def stored(node: ast.Assign) -> set[str]:
    return {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def run(mutant: Mutant) -> str:
    """`found`, or another outcome of the mutant."""
    with tempfile.TemporaryDirectory(prefix="weft-mutant-") as name:
        env = os.environ | {"WEFT_SANITIZE": "all", "WEFT_DEVICE": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
        argv = command(mutant, Path(name))
        try:
            ran = subprocess.run(argv, env=env, cwd=name, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"did not end within {SECONDS} s"
    if argv[1] == "-c":
        if ran.returncode:
            return f"ended with {ran.returncode}: {ran.stderr[-300:]}"
        return "found" if json.loads(ran.stdout.splitlines()[-1]) else "not found"
    output = ran.stdout + ran.stderr
    if "error[" in output:
        return "found"
    if "ModuleNotFoundError: " in output:
        return f"{ABSENT}{output.rpartition('ModuleNotFoundError: ')[2].splitlines()[0]}"
    return "not found" if ran.returncode == 0 else f"ended with {ran.returncode}, and no finding: {output[-300:]}"


def files(only: list[str]) -> list[Path]:
    places = ["examples/[0-9]*.py", "tests/python/acceptance/test_*.py"]
    places += ["tests/benchmarks/suite/*.py", "tests/benchmarks/second/*.py"]
    every = [
        path for place in places for path in sorted(ROOT.glob(place)) if path.name not in ("__init__.py", "case.py")
    ]
    return [path for path in every if not only or any(part in str(path) for part in only)]


def main() -> int:
    from mutation_known import KNOWN, MISSED, reason

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="files whose paths contain one of these, with commas between")
    parser.add_argument("--kind", default="", help="mutants of this kind alone")
    parser.add_argument("--list", action="store_true", help="print the mutants, and run none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--json", type=Path, help="the file that gets what came of each")
    options = parser.parse_args()
    mutants = [
        mutant for path in files([part for part in options.only.split(",") if part]) for mutant in Cut(path).all()
    ]
    mutants = [mutant for mutant in mutants if options.kind in ("", mutant.kind)]
    if options.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        print(f"{len(mutants)} mutants: {dict(Counter(mutant.kind for mutant in mutants))}")
        return 0
    start = time.monotonic()
    outcomes: dict[Mutant, str] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, outcome in zip(mutants, pool.map(run, mutants), strict=True):
            outcomes[mutant] = outcome
            done = f"{len(outcomes)} of {len(mutants)}"
            print(f"{done}: {outcome.splitlines()[0]}: {mutant.name}", file=sys.stderr, flush=True)
            if options.json:
                table = {mutant.name: outcome for mutant, outcome in outcomes.items()}
                options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    for mutant in [mutant for mutant, outcome in outcomes.items() if outcome.startswith(ABSENT)]:
        print(f"{mutant.name}\n    {outcomes.pop(mutant)}")
    counts: Counter[str] = Counter()
    unexplained = 0
    for mutant, outcome in outcomes.items():
        counts[mutant.kind] += 1
        if outcome == "found":
            counts[f"{mutant.kind} found"] += 1
            continue
        why = reason(KNOWN | MISSED, mutant)
        unexplained += why is None
        print(f"{mutant.name}\n    {why or f'UNEXPLAINED: {outcome}'}", flush=True)
    found = sum(outcome == "found" for outcome in outcomes.values())
    print("\n| what was deleted | mutants | found |\n|---|---|---|")
    for kind in ("barrier", "fence", "syncwarp", "mask", "guard", "initialization"):
        print(f"| {kind} | {counts[kind]} | {counts[f'{kind} found']} |")
    print(f"| all | {len(outcomes)} | {found} |")
    harmless = [reason(KNOWN, mutant) for mutant, outcome in outcomes.items() if outcome != "found"]
    faults = len(outcomes) - sum(why is not None for why in harmless)
    share = 100 * found / max(faults, 1)
    print(f"\n{faults} mutants have a fault, of which {found} were found, {share:.1f} %; {unexplained} unexplained; "
          f"{time.monotonic() - start:.0f} s")  # fmt: skip
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
