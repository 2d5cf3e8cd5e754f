"""Compares each optional pass of the CPU planner on and off, for every benchmark kernel that it changes.

A pass *fires* on a kernel if the kernel's plan is another one without it. Each such kernel is compiled with all passes
and without this one, both run in turns in this process, and the outputs are compared. The table has a row for each
pass: on how many kernels it fires, the geometric mean of the gain, and the worst kernel. Kernels that the pass makes
more than 5 % slower are listed after the table.

    python tests/benchmarks/passes.py --sets first,kinds --random 100 --only guards,unroll
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from suite import Case, Work

SLOWER = 1.05
"""The ratio of times from which on a kernel counts as slower."""
TURN_MS = 5.0
"""How long each kernel runs between two runs of the other one, at least."""


def optional_passes(selected: list[str]) -> list[str]:
    """The names of the passes to compare, in the order of the planner."""
    from weft._weft import plan_passes

    names = [name for name, _, optional, _ in plan_passes() if optional]
    if unknown := set(selected) - set(names):
        raise SystemExit(f"no optional pass is named {', '.join(sorted(unknown))}; the passes are {', '.join(names)}")
    return [name for name in names if not selected or name in selected]


def cases_of(sets: list[str], count: int, seed: int) -> list[tuple[str, Case]]:
    """The kernels of some sets, and random ones."""
    from cpu import SETS
    from generated import generate

    if unknown := set(sets) - SETS.keys():
        raise SystemExit(f"no set is named {', '.join(sorted(unknown))}; the sets are {', '.join(SETS)}")
    named = [(name, case) for name in sets for case in SETS[name]]
    return named + [("random", generate(number)) for number in range(seed, seed + count)]


class Bound:
    """A kernel that is compiled without some passes, for the arguments of a case."""

    def __init__(self, cuda: ModuleType, case: Case, work: Work, args: tuple[Any, ...], skipped: list[str]) -> None:
        from weft import _weft

        _weft.skip_passes(skipped)
        self.kernel = case.make(cuda)
        configured = self.kernel[work.grid, work.block]

        def launch() -> None:
            configured(*args)
            cuda.synchronize()

        self.launch: Callable[[], None] = launch
        launch()  # compiles the kernel for these arguments

    def plans(self, skipped: list[str]) -> list[str]:
        """The text of the kernel's plans without some passes."""
        from weft import _weft

        _weft.skip_passes(skipped)
        return [text for kernel in self.kernels() for text in _weft.printed_plans(kernel)]

    def kernels(self) -> list[Any]:
        """The kernel, or those that a host function launches."""
        function = getattr(self.kernel, "function", None)
        if function is None:
            return [self.kernel]
        return [value for value in inspect.getclosurevars(function).nonlocals.values() if hasattr(value, "py_func")]


def measured(
    case: Case, work: Work, args: Any, on_host: Any, bound: list[Bound], repeats: int, clock: str
) -> list[float]:
    """The least time of each kernel in milliseconds; they run in turns."""
    from cpu import elapsed_ms
    from kernels import spoil

    def clear() -> None:
        if case.accumulates or work.initial:
            spoil(np, case, work, on_host)

    times: list[list[float]] = [[] for _ in bound]
    counts = []
    for kernel in bound:
        clear()
        counts.append(min(200, max(1, math.ceil(TURN_MS / max(elapsed_ms(kernel.launch, "wall"), 1e-3)))))
    for turn in range(repeats):
        order = list(range(len(bound)))
        for number in order if turn % 2 else order[::-1]:
            for _ in range(counts[number]):
                clear()
                times[number].append(elapsed_ms(bound[number].launch, clock))
    return [min(values) for values in times]


def outputs(case: Case, work: Work, on_host: Any, kernel: Bound) -> tuple[Any, ...]:
    """What the kernel writes."""
    from kernels import spoil

    spoil(np, case, work, on_host)
    kernel.launch()
    return tuple(on_host[position].copy() for position in work.outputs)


def compare(cuda: ModuleType, case: Case, passes: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each pass that fires on a kernel."""
    from cpu import seen_by_host

    work = case.work(options.sizes)
    args = tuple(cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args)
    on_host = tuple(seen_by_host(arg) if hasattr(arg, "device_pointer") else arg for arg in args)
    complete = Bound(cuda, case, work, args, [])
    plans = complete.plans([])
    expected = outputs(case, work, on_host, complete)
    rows = []
    for name in passes:
        if complete.plans([name]) == plans:
            continue
        without = Bound(cuda, case, work, args, [name])
        error = case.error(np, outputs(case, work, on_host, without), expected)
        times = measured(case, work, args, on_host, [complete, without], options.repeats, options.clock)
        rows.append({"pass": name, "with_ms": times[0], "without_ms": times[1], "is_right": error <= case.tolerance})
    return rows


def table(rows: list[dict[str, Any]], passes: list[str]) -> str:
    """The table of all passes, and the kernels that a pass makes slower."""
    lines = ["| pass | kernels | gain | best | worst |", "|---|---|---|---|---|"]
    slower = []
    for name in passes:
        of_pass = [row | {"gain": row["without_ms"] / row["with_ms"]} for row in rows if row["pass"] == name]
        if not of_pass:
            lines.append(f"| `{name}` | 0 | | | |")
            continue
        best, worst = (choose(of_pass, key=lambda row: row["gain"]) for choose in (max, min))
        mean = statistics.geometric_mean(row["gain"] for row in of_pass)
        shown = [f"{row['gain']:.2f} {row['kernel']}" for row in (best, worst)]
        lines.append(f"| `{name}` | {len(of_pass)} | {mean:.3f} | {shown[0]} | {shown[1]} |")
        for row in sorted(of_pass, key=lambda row: row["gain"]):
            if row["gain"] < 1 / SLOWER:
                slower.append(
                    f"- `{name}`: {row['kernel']} ({row['set']}), {1 / row['gain']:.2f} times as slow with it"
                )
    wrong = [f"- `{row['pass']}`: {row['kernel']} ({row['set']})" for row in rows if not row["is_right"]]
    lines += ["", f"Slower with the pass by more than {SLOWER - 1:.0%}:" if slower else "No kernel is slower.", *slower]
    if wrong:
        lines += ["", "WRONG: the outputs differ with and without the pass:", *wrong]
    return "\n".join(lines)


def main() -> int:
    """Runs the benchmark; the exit code is 1 if outputs differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="first,second,third,fourth,kinds", help="sets of kernels, or none")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also N random kernels")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first random kernel")
    parser.add_argument("--only", default="", help="passes to compare (default: all optional ones)")
    parser.add_argument("--kernels", default="", help="kernels whose names contain this text")
    parser.add_argument("--sizes", choices=("full", "tiny"), default="full")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=("wall", "processor"), default="processor")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ |= {"WEFT_DEVICE": "cpu", "WEFT_CPU_THREADS": str(options.threads), "WEFT_CACHE": "off"}
    from suite.faults import brief
    from weft import cuda

    passes = optional_passes([name for name in options.only.split(",") if name])
    sets = [] if options.sets == "none" else options.sets.split(",")
    rows, failed = [], []
    for name, case in cases_of(sets, options.random, options.seed):
        if options.kernels not in case.name:
            continue
        try:
            found = compare(cuda, case, passes, options)
        except Exception as fault:
            failed.append(f"{case.name} ({name}): {brief(fault)}")
            continue
        rows += [{"kernel": case.name, "set": name, **row} for row in found]
        print(f"{case.name}: {', '.join(row['pass'] for row in found) or 'no pass fires'}", file=sys.stderr, flush=True)
    print(table(rows, passes))
    if failed:
        print("\nNot measured:\n" + "\n".join(f"- {text}" for text in failed))
    if options.json:
        options.json.write_text(json.dumps({"passes": passes, "rows": rows, "failed": failed}, indent=1))
    return 0 if all(row["is_right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
