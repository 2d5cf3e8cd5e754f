"""Times the first launch of each kernel of the suite and the examples, in weft and numba-cuda; ``compile.py`` calls it.

A program is one kernel of the suite or one example, and runs in a fresh process each time. The driver's own cache is
off, so that every library generates its machine code or loads it from a cache of its own. The time is that of a launch
and the wait for its end, with all that the library does before; the context exists already. The suite's arrays are on
the device. In an example it is each kernel's first launch with new types of arguments, as the example makes it: arrays
of the host are copied, too.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

MODES = {
    "weft, cache off": ("weft", {"WEFT_CACHE": "off"}, False),
    "weft, cold": ("weft", {"WEFT_CACHE": "on"}, False),
    "weft, warm": ("weft", {"WEFT_CACHE": "on"}, True),
    "weft, warm, machine code": ("weft", {"WEFT_CACHE": "on", "WEFT_CACHE_MACHINE_CODE": "1"}, True),
    "numba-cuda": ("numba-cuda", {}, False),
    "numba-cuda, cache=True, warm": ("numba-cuda", {"BENCHMARK_NUMBA_CACHE": "1"}, True),
}
"""Of each: the library, its environment, and whether the folder of its cache is that of a run before."""


class Watch:
    """Times the first launch of each kernel for each tuple of types."""

    def __init__(self, cuda: Any) -> None:
        """Initialize without launches."""
        self.cuda = cuda
        self.times: dict[str, float] = {}

    def launch(self, name: str, configured: Any, *args: Any) -> Any:
        """Launch a kernel; time it if it is the first launch for these types."""
        kinds = [(type(arg).__name__, str(getattr(arg, "dtype", "")), getattr(arg, "ndim", 0)) for arg in args]
        key = f"{name}{kinds}"
        if key in self.times:
            return configured(*args)
        self.cuda.synchronize()
        begin = time.perf_counter()
        result = configured(*args)
        self.cuda.synchronize()
        self.times[key] = (time.perf_counter() - begin) * 1e3
        return result


class Launches(ast.NodeTransformer):
    """Rewrites a program so that a stopwatch makes its launches: calls of configured kernels."""

    def __init__(self, package: str) -> None:
        """Replace the program's imports from weft by imports from this package."""
        self.package = package

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.module and node.module.split(".")[0] == "weft":
            node.module = node.module.replace("weft", self.package, 1)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        # The source of a kernel must not change, because the digest of its code would change.
        return node if node.decorator_list else self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        inner = node.func
        is_forall = (
            isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "forall"
        )
        if not (isinstance(inner, ast.Subscript) or is_forall) or node.keywords:
            return node
        kernel = inner.value if isinstance(inner, ast.Subscript) else inner.func.value  # type: ignore[attr-defined]
        watch = ast.Name("__launch__", ast.Load())
        made = ast.Call(watch, [ast.Constant(ast.unparse(kernel)), inner, *node.args], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))


def library(name: str) -> Any:
    """The library's module, with its cache as the environment of this process configures it."""
    if name == "weft":
        from weft import cuda

        return cuda
    from numba import cuda

    if os.environ.get("BENCHMARK_NUMBA_CACHE"):
        jit = cuda.jit
        cuda.jit = lambda *args, **options: jit(*args, **{"cache": not options.get("device"), **options})
    return cuda


def run_program(program: str, name: str) -> dict[str, float]:
    """Milliseconds of each kernel's first launch, in this process, which must be new."""
    cuda = library(name)
    watch = Watch(cuda)
    if (example := EXAMPLES / f"{program}.py").exists():
        package = "weft" if name == "weft" else "numba"
        tree = Launches(package).visit(ast.parse(example.read_text()))
        cuda.synchronize()
        os.chdir(tempfile.mkdtemp())
        scope = {"__name__": "__main__", "__file__": str(example), "__launch__": watch.launch}
        sys.argv = [str(example)]
        exec(compile(tree, str(example), "exec"), scope)
        return watch.times
    from suite import CASES

    case = next(case for case in CASES if case.name == program)
    work = case.work("tiny")
    args = tuple(cuda.to_device(arg) if getattr(arg, "shape", ()) else arg for arg in work.args)
    watch.launch(case.name, case.make(cuda)[work.grid, work.block], *args)
    return dict.fromkeys([case.name], *watch.times.values())


def measure(program: str, mode: str, runs: int) -> dict[str, float] | str:
    """Medians over new processes, or a line about the error."""
    name, env, warm = MODES[mode]
    samples = []
    with tempfile.TemporaryDirectory() as kept:
        for run in range(runs + warm):
            folder = kept if warm else str(Path(kept) / str(run))
            shared = {"CUDA_CACHE_DISABLE": "1", "WEFT_CACHE_DIR": folder, "NUMBA_CACHE_DIR": folder}
            command = [sys.executable, __file__, "--program", program, "--library", name]
            environment = os.environ | shared | env
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                return (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:100].replace("|", "\\|")
            if run or not warm:  # the first run only fills the cache
                samples.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return {kernel: statistics.median(sample[kernel] for sample in samples) for kernel in samples[0]}


def geometric_mean(values: list[float]) -> float:
    """The geometric mean; NaN if there are no values."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def table(title: str, programs: list[str], modes: list[str], runs: int) -> dict[str, Any]:
    """Measure programs, print a row for each kernel and the means; returns milliseconds by kernel and mode."""
    print(f"\nFirst launches: {title}, ms, median of {runs} fresh processes, the driver's cache off\n")
    print("| kernel | " + " | ".join(modes) + " |\n" + "|---" * (len(modes) + 1) + "|")
    rows: dict[str, dict[str, float]] = {}
    faults = []
    for program in programs:
        found = {mode: measure(program, mode, runs) for mode in modes}
        faults += [f"- {program}, {mode}: {times}" for mode, times in found.items() if isinstance(times, str)]
        # Libraries name types differently, so kernels are matched by their order.
        lists = {mode: list(times.items()) for mode, times in found.items() if not isinstance(times, str)}
        for index in range(max(map(len, lists.values()), default=0)):
            row = {mode: times[index][1] for mode, times in lists.items() if index < len(times)}
            kernel = next(times[index][0] for times in lists.values() if index < len(times)).split("[(")[0]
            name = kernel if kernel == program else f"{program}: {kernel}"
            rows[f"{name} ({index})" if name in rows else name] = row
            cells = [f"{row[mode]:.2f}" if mode in row else "-" for mode in modes]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    whole = [row for row in rows.values() if all(mode in row for mode in modes)]
    for what, chosen in (
        ("kernels that all have", dict.fromkeys(modes, whole)),
        ("each's own", {mode: [row for row in rows.values() if mode in row] for mode in modes}),
    ):
        means = [f"{geometric_mean([row[mode] for row in chosen[mode]]):.2f}" for mode in modes]
        counts = ", ".join(sorted({str(len(chosen[mode])) for mode in modes}))
        print(f"| geometric mean of {what} ({counts}) | " + " | ".join(means) + " |")
    print("\n".join(["", *faults]) if faults else "", flush=True)
    return rows


def tables(runs: int, modes: list[str] | None = None) -> dict[str, Any]:
    """The tables of the suite and of the examples."""
    from suite import CASES

    modes = modes or list(MODES)
    examples = sorted(path.stem for path in EXAMPLES.glob("[0-9]*.py"))
    return {
        "suite": table("the suite's kernels", [case.name for case in CASES], modes, runs),
        "examples": table("the examples' kernels", examples, modes, runs),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mode", action="append", choices=tuple(MODES), help="measure these only")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()):
            times = run_program(options.program, options.library)
        print(json.dumps(times))
        return 0
    result = tables(options.runs, options.mode)
    if out := os.environ.get("OUT"):
        (Path(out) / "first_launch.json").write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
