#!/usr/bin/env python3
"""Runs very many programs that combine patterns that the CPU back end transforms, and compares each with CPython.

    python tests/python/combined --count 200000 --first 0 --jobs 16
    python tests/python/combined --count 20000 --plan x86-64-v4 --seconds 600 --json out.json
    python tests/python/combined --count 5000 --sanitize
    python tests/python/combined --count 20000 --guided
    python tests/python/combined --minimize 1234

A program fails if its results differ from CPython's, if it accesses memory outside its arrays, if weft rejects it, if
it crashes the process, or if it does not end within `--timeout` seconds. Each failure is written to the folder
`--found` as a self-contained program. The last lines count the features that occurred together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from combined.sweep import Item

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="combined", description="random programs that combine what the planner does")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, help="start no program after so long")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds that a program may take")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--plan", metavar="CPU", help="plan kernels as for a CPU of this name, such as x86-64-v4, on any machine"
    )
    parser.add_argument(
        "--opt-level", choices="0123", default="3",
        help="LLVM's optimization level; at 0 a program takes a sixth of the time, and weft's own plans are the same",
    )  # fmt: skip
    parser.add_argument(
        "--sanitize", nargs="?", const="all", metavar="CHECKS", help="under the sanitizer, which must find nothing"
    )
    parser.add_argument(
        "--guided", action="store_true",
        help="choose programs by the plans of earlier ones, until each pair of plan features has --pairs programs",
    )  # fmt: skip
    parser.add_argument(
        "--after", nargs="*", default=[], metavar="FILE", help="add the counts of earlier runs, as --json wrote them"
    )
    parser.add_argument("--judge", action="store_true", help="check that the programs are sound, without weft")
    parser.add_argument(
        "--found", metavar="FOLDER", default="combined-found", help="where programs that fail are written"
    )
    parser.add_argument("--json", metavar="FILE", help="write counts, failures, features and pairs")
    parser.add_argument(
        "--pairs", type=int, default=500, help="list pairs of the planner's in fewer of 200,000 programs"
    )
    parser.add_argument("--own-pairs", action="store_true", help="list those of the generator's own features, too")
    parser.add_argument("--show", metavar="SEED", help="print a program as a file that needs nothing else")
    parser.add_argument("--minimize", metavar="SEED", help="make the failing program of a seed small")
    return parser.parse_args()


def environment(asked: argparse.Namespace) -> dict[str, str]:
    """The settings that weft runs with; settings of the caller take precedence."""
    settings = {"WEFT_DEVICE": asked.device, "WEFT_CACHE": "off", "WEFT_CPU_THREADS": "1"}
    if asked.plan:
        settings["WEFT_HOST_PLAN"] = asked.plan
    if asked.opt_level != "3":
        settings["WEFT_HOST_OPT_LEVEL"] = asked.opt_level
    if asked.sanitize:
        settings["WEFT_SANITIZE"] = asked.sanitize
    return settings


def main() -> int:
    """Runs the command of the command line."""
    asked = options()
    settings = environment(asked)
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    from combined.features import Pairs
    from combined.guide import Guide
    from combined.saved_programs import self_contained
    from combined.sweep import Counts, Result, item_of, name_of, program_of, sweep

    if asked.show is not None:
        print(self_contained(program_of(item_of(asked.show)), "", settings))
        return 0
    if asked.judge:
        return judged(asked)
    if asked.minimize is not None:
        from combined.minimize import minimize

        program, found = minimize(item_of(asked.minimize), asked.device, timeout=asked.timeout)
        print(self_contained(program, found, settings))
        return int(found not in ("passed", "unsound"))
    own, planned = Pairs(), Pairs()
    earlier = 0
    for path in asked.after:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        earlier += sum(data["results"].values())
        own.load(data["features"], data["pairs"])
        planned.load(data["planned"], data["planned_pairs"])
    if asked.guided and (asked.device != "cpu" or asked.sanitize):
        sys.exit("--guided needs the CPU's plans: leave --device and --sanitize out")
    guide = Guide(asked.first, asked.count, planned, asked.pairs) if asked.guided else None
    items: Iterable[Item] = guide or range(asked.first, asked.first + asked.count)

    def report(result: Result) -> None:
        own.add(result.features)
        planned.add(*result.plans)
        if guide is not None:
            guide.learn(result.seed, result.plans)
        if result.outcome != "passed" and not result.outcome.startswith("unsound"):
            path = Path(asked.found) / f"seed_{re.sub('[^0-9a-z_]', '_', name_of(result.seed))}{asked.plan or ''}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                path.write_text(self_contained(program_of(result.seed), result.outcome, settings), encoding="utf-8")
            except Exception as error:
                print(f"seed {name_of(result.seed)} cannot be written: {error}")
            print(f"seed {name_of(result.seed)} failed: {result.outcome[:400]}\n    {path}", flush=True)
        elif result.outcome != "passed":
            print(f"seed {name_of(result.seed)} proves nothing: {result.outcome[:200]}", flush=True)

    def progress(counts: Counts) -> None:
        print(f"combined: {counts.results}, {counts.total / counts.seconds:.1f} a second", flush=True)

    counts = sweep(
        items, jobs=asked.jobs, device=asked.device,
        planned=asked.device == "cpu" and not asked.sanitize, timeout=asked.timeout,
        seconds=asked.seconds, report=report, progress=progress,
    )  # fmt: skip
    from combined.impossible import reason

    wanted = asked.pairs if asked.guided else max(1, asked.pairs * (counts.total + earlier) // 200_000)
    tables = (("Features of programs", own, asked.own_pairs), ("Features of plans", planned, True))
    for title, pairs, rare in tables:
        if pairs.single:
            print(f"\n{title}:\n" + "\n".join(pairs.table(counts.total + earlier, wanted if rare else 0, reason)))
    rate = counts.total / max(counts.seconds, 1e-9)
    print(
        f"\ncombined: {counts.results} in {counts.seconds:.0f} s, {rate:.1f} a second, "
        f"{rate / asked.jobs:.1f} a process"
    )
    if asked.json:
        data = {
            "command": sys.argv[1:], "results": counts.results, "seconds": counts.seconds, "rate": rate,
            "failed": [{"seed": name_of(each.seed), "outcome": each.outcome} for each in counts.failed],
            "planned": dict(planned.single), "features": dict(own.single),
            "planned_pairs": [[*pair, count] for pair, count in planned.pairs.items()],
            "pairs": [[*pair, count] for pair, count in own.pairs.items()],
        }  # fmt: skip
        Path(asked.json).write_text(json.dumps(data, indent=1), encoding="utf-8")
    return int(bool(counts.failed))


def judged(asked: argparse.Namespace) -> int:
    """Checks the programs themselves."""
    from combined.check import judge
    from combined.programs import generate

    wrong = 0
    for seed in range(asked.first, asked.first + asked.count):
        if why := judge(generate(seed)):
            wrong += 1
            print(f"seed {seed}: {why}")
    print(f"{asked.count} programs, {wrong} unsound")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
